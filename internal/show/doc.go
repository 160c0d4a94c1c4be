// Package show is what commands, pages and the API show alike: the figures in their JSON form, and how numbers, times and sizes are
// written for people.
package show
