// Package config is the one table of settings ([Table]): key, default, meaning, allowed values, secret or not. The reading of
// flags, environment and files ([Load]), the dump of what is in force, the error messages and docs/configuration.md all come
// from it.
//
// A setting is taken from the first of: its flag, its environment variable, the one settings file. The file is the first of
// --config FILE, ./deepcrawl.env and /etc/deepcrawl/deepcrawl.env that there is. A secret may stand in a file of its own, named
// by the setting with _FILE behind it. An older name (SEOMASTER_...) counts where the new one is set nowhere.
//
// This package reads no environment by itself: main hands it in.
package config
