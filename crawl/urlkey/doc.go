// Package urlkey gives an http(s) URL one canonical form and a 16-byte key.
package urlkey
