package scope

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/net/publicsuffix"
)

// Mode is the rule that says how far a run may go from its seeds.
type Mode string

const (
	// ModeHost keeps to the seeds' hosts, `www.` folded, each port a host of
	// its own. It is the default.
	ModeHost Mode = "host"
	// ModeDomain keeps to the seeds' registrable domains (publicsuffix.org),
	// on any port. An IP address, a name without a dot and a public suffix
	// (a seed like https://github.io/) are domains of their own.
	ModeDomain Mode = "domain"
	// ModeSubdomains keeps to the seeds' hosts and every name below them, on
	// any port.
	ModeSubdomains Mode = "subdomains"
	// ModePrefix keeps to the seeds' hosts and the directories of their paths:
	// /docs/ for /docs/intro and for /docs/. Where that would be the whole
	// host because the seed is in the root directory, a seed without an
	// extension stands for a directory: /blog means /blog and what is below
	// /blog/.
	ModePrefix Mode = "prefix"
)

// ErrConfig is what errors of ParseMode and Compile wrap.
var ErrConfig = errors.New("invalid scope")

// ParseMode returns the mode of that name; the empty string means ModeHost.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case "":
		return ModeHost, nil
	case ModeHost, ModeDomain, ModeSubdomains, ModePrefix:
		return m, nil
	}
	return "", fmt.Errorf("%w: scope %q is none of host, domain, subdomains, prefix", ErrConfig, s)
}

// Config is what a run says about its scope.
//
// Include and Exclude are RE2 regular expressions (golang.org/s/re2syntax),
// searched anywhere in the whole canonical URL, upper and lower case apart,
// as the crawlers that SEO people use have it: /cart/ or \?sort= or \.pdf$ or
// ^https://example\.com/blog/. Letters beyond ASCII are written either as such
// or escaped as in URLs. A URL that an Exclude matches is out; where there are
// Includes one of them has to match, except for the seeds themselves, from
// which the rest is found.
type Config struct {
	Mode             Mode
	Include, Exclude []string
}

// Seed is a starting URL: its host (the unit of politeness, `www.` folded),
// its canonical form, and the offset of the path in that.
type Seed struct {
	Host   string
	URL    []byte
	PathAt int
}

// Verdict says whether a URL belongs to the run, and which rule it broke.
type Verdict struct {
	In bool
	// Rule is empty for what is in, else "outside host" (or domain,
	// subdomains, prefix), "excluded by pattern P" or "no include pattern
	// matches". It depends on the configuration only, not on the URL.
	Rule string
}

// Scope is safe for concurrent use.
type Scope struct {
	mode     Mode
	outside  Verdict
	names    map[string]bool     // ModeHost: hosts; else names without port
	prefixes map[string][]prefix // ModePrefix: by host
	seeds    map[string]bool     // canonical forms
	include  []pattern
	exclude  []pattern

	mu    sync.RWMutex
	known map[string]bool // ModeDomain: names below one of names, is it theirs
}

// maxKnown bounds what a Scope remembers of names.
const maxKnown = 4096

type prefix struct {
	dir  []byte // ends in a slash
	self []byte // the directory's own path without the slash, or nil
}

// Compile checks the configuration. Its errors wrap ErrConfig and name what is
// wrong and what is allowed.
func Compile(c Config, seeds []Seed) (*Scope, error) {
	mode, err := ParseMode(string(c.Mode))
	if err != nil {
		return nil, err
	}
	if len(seeds) == 0 {
		return nil, fmt.Errorf("%w: there are no seeds", ErrConfig)
	}
	s := &Scope{
		mode:     mode,
		outside:  Verdict{Rule: "outside " + string(mode)},
		names:    make(map[string]bool),
		prefixes: make(map[string][]prefix),
		seeds:    make(map[string]bool),
		known:    make(map[string]bool),
	}
	for _, seed := range seeds {
		if seed.Host == "" || seed.PathAt <= 0 || seed.PathAt >= len(seed.URL) {
			return nil, fmt.Errorf("%w: seed %q has no host or no path", ErrConfig, seed.URL)
		}
		s.seeds[string(seed.URL)] = true
		switch mode {
		case ModeHost:
			s.names[seed.Host] = true
		case ModeDomain:
			s.names[registrable(hostname(seed.Host))] = true
		case ModeSubdomains:
			s.names[hostname(seed.Host)] = true
		case ModePrefix:
			s.prefixes[seed.Host] = append(s.prefixes[seed.Host], directory(seed.URL[seed.PathAt:]))
		}
	}
	if s.include, err = compilePatterns("include", c.Include); err != nil {
		return nil, err
	}
	if s.exclude, err = compilePatterns("exclude", c.Exclude); err != nil {
		return nil, err
	}
	return s, nil
}

// Check says whether the URL belongs to the run. It does not allocate but for
// names it sees for the first time, in ModeDomain.
func (s *Scope) Check(host string, url []byte, pathAt int) Verdict {
	if !s.inside(host, url[pathAt:]) {
		return s.outside
	}
	for i := range s.exclude {
		if p := &s.exclude[i]; p.match(url) {
			return Verdict{Rule: p.rule}
		}
	}
	if len(s.include) == 0 {
		return Verdict{In: true}
	}
	for i := range s.include {
		if s.include[i].match(url) {
			return Verdict{In: true}
		}
	}
	if s.seeds[string(url)] {
		return Verdict{In: true}
	}
	return Verdict{Rule: "no include pattern matches"}
}

func (s *Scope) inside(host string, path []byte) bool {
	switch s.mode {
	case ModeDomain:
		name := hostname(host)
		return s.names[name] || s.below(name)
	case ModeSubdomains:
		for name := hostname(host); name != ""; {
			if s.names[name] {
				return true
			}
			_, name, _ = strings.Cut(name, ".")
		}
		return false
	case ModePrefix:
		for _, p := range s.prefixes[host] {
			if bytes.HasPrefix(path, p.dir) {
				return true
			}
			if p.self != nil && bytes.HasPrefix(path, p.self) && (len(path) == len(p.self) || path[len(p.self)] == '?') {
				return true
			}
		}
		return false
	default:
		return s.names[host]
	}
}

// below says that one of the domains is the registrable one of a longer name.
// The public suffix list is asked once a name, for asking allocates.
func (s *Scope) below(name string) bool {
	parent := name
	for {
		if _, parent, _ = strings.Cut(parent, "."); parent == "" {
			return false
		}
		if s.names[parent] {
			break
		}
	}
	s.mu.RLock()
	in, ok := s.known[name]
	s.mu.RUnlock()
	if !ok {
		in = s.names[registrable(name)]
		s.mu.Lock()
		if len(s.known) < maxKnown {
			s.known[strings.Clone(name)] = in
		}
		s.mu.Unlock()
	}
	return in
}

// directory is what ModePrefix makes of a seed's path and query.
func directory(path []byte) prefix {
	path, _, _ = bytes.Cut(path, []byte("?"))
	i := bytes.LastIndexByte(path, '/')
	if i == 0 && len(path) > 1 && bytes.IndexByte(path, '.') < 0 {
		self := bytes.Clone(path)
		return prefix{dir: append(bytes.Clone(path), '/'), self: self}
	}
	return prefix{dir: bytes.Clone(path[:i+1])}
}

// hostname is a host without its port.
func hostname(host string) string {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		return host[:i]
	}
	return host
}

// registrable is a name's registrable domain, or the name itself where it has
// none: addresses, single labels, public suffixes.
func registrable(name string) string {
	if isAddress(name) {
		return name
	}
	suffix, _ := publicsuffix.PublicSuffix(name)
	rest := strings.TrimSuffix(name[:len(name)-len(suffix)], ".")
	return name[strings.LastIndexByte(rest, '.')+1:]
}

// isAddress relies on canonical hosts: only an IPv4 address ends in a number.
func isAddress(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	return name[0] == '[' || last != "" && '0' <= last[0] && last[0] <= '9'
}
