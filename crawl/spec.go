package crawl

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"deepcrawl/crawl/scope"
	"deepcrawl/crawl/urlkey"
)

// Spec is the definition of a run as stored with it. Its JSON form is what the API will take.
type Spec struct {
	Seeds   []string   `json:"seeds"`
	Scope   scope.Mode `json:"scope,omitempty"`   // empty: scope.ModeHost
	Include []string   `json:"include,omitempty"` // patterns, see scope.Config
	Exclude []string   `json:"exclude,omitempty"`
	Profile string     `json:"profile,omitempty"` // name of a Profile; empty: normal
	// MaxPages bounds the URLs requested, MaxDepth the link hops from a seed, MaxTime the time worked; 0 is no limit.
	MaxPages int      `json:"max_pages,omitempty"`
	MaxDepth int      `json:"max_depth,omitempty"`
	MaxTime  Duration `json:"max_time,omitempty"`
	// UserAgent replaces the node's.
	UserAgent string `json:"user_agent,omitempty"`
	// FollowNofollow also follows links marked nofollow, and those of pages whose robots directives say nofollow.
	FollowNofollow bool `json:"follow_nofollow,omitempty"`
	// NoSitemaps leaves sitemaps alone.
	NoSitemaps bool `json:"no_sitemaps,omitempty"`
	// Tracking are the query parameters dropped from URLs; nil: urlkey.DefaultTrackingParams.
	Tracking []string `json:"tracking_params,omitempty"`
	// KeepTracking drops none.
	KeepTracking bool `json:"keep_tracking,omitempty"`
}

// Duration is a time.Duration whose JSON form is its text ("1h30m").
type Duration time.Duration

// MarshalText gives the text of time.Duration.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads the text of time.Duration.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}

// Profile is how hard a run may press a site.
type Profile struct {
	Name        string
	Concurrency int     // requests in flight of the run, over all nodes; 0: up to the host cap
	PerSecond   float64 // requests a second of the run, over all nodes; 0: no limit
}

// Profiles lists the known profiles.
func Profiles() []Profile {
	return []Profile{
		{Name: "gentle", Concurrency: 2, PerSecond: 1},
		{Name: "normal", Concurrency: 8},
		{Name: "fast"},
	}
}

// DefaultProfile is the name of the profile of a run that names none.
const DefaultProfile = "normal"

// ParseProfile finds a profile by name; the error lists the known ones.
func ParseProfile(name string) (Profile, error) {
	if name == "" {
		name = DefaultProfile
	}
	names := make([]string, 0, 3)
	for _, p := range Profiles() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Profile{}, fmt.Errorf("profile %q: allowed are %s", name, strings.Join(names, ", "))
}

// rules are the compiled parts of a Spec.
type rules struct {
	spec    Spec
	profile Profile
	canon   *urlkey.Canonicalizer
	scope   *scope.Scope
	seeds   []urlkey.URL
}

// compile checks a Spec whole. Its errors name the field and what is allowed.
func (s Spec) compile() (*rules, error) {
	r := &rules{spec: s}
	var err error
	if r.profile, err = ParseProfile(s.Profile); err != nil {
		return nil, err
	}
	for _, f := range []struct {
		name string
		n    int64
	}{{"max-pages", int64(s.MaxPages)}, {"depth", int64(s.MaxDepth)}, {"time", int64(s.MaxTime)}} {
		if f.n < 0 {
			return nil, fmt.Errorf("%s must not be negative (0 means no limit)", f.name)
		}
	}
	if strings.ContainsFunc(s.UserAgent, func(c rune) bool { return c < ' ' || c == 0x7f || c > 0x7e }) {
		return nil, fmt.Errorf("user-agent %q: allowed are printable ASCII characters", s.UserAgent)
	}
	if len(s.Seeds) == 0 {
		return nil, fmt.Errorf("no URL to start from")
	}
	if r.canon, err = urlkey.New(urlkey.Options{TrackingParams: s.Tracking, KeepTracking: s.KeepTracking}); err != nil {
		return nil, err
	}
	scoped := make([]scope.Seed, 0, len(s.Seeds))
	for _, raw := range s.Seeds {
		u, err := r.canon.Parse(strings.TrimSpace(raw))
		if err != nil {
			return nil, fmt.Errorf("URL %q: %w", raw, err)
		}
		if hasUserinfo(raw) {
			return nil, fmt.Errorf("URL of %s: a user name and password are not sent; leave them out", u.Host)
		}
		if slices.ContainsFunc(r.seeds, func(o urlkey.URL) bool { return o.Key == u.Key }) {
			continue
		}
		r.seeds = append(r.seeds, u)
		scoped = append(scoped, scope.Seed{Host: u.Host, URL: u.Raw, PathAt: u.PathAt})
	}
	r.scope, err = scope.Compile(scope.Config{Mode: s.Scope, Include: s.Include, Exclude: s.Exclude}, scoped)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// hasUserinfo says whether an http URL carries "user:password@" (RFC 3986 section 3.2.1): it would be kept and shown with the
// run, and is of no use, since it is never sent.
func hasUserinfo(raw string) bool {
	_, rest, _ := strings.Cut(raw, ":")
	rest = strings.TrimLeft(rest, `/\`)
	if i := strings.IndexAny(rest, `/\?#`); i >= 0 {
		rest = rest[:i]
	}
	return strings.Contains(rest, "@")
}

// Check reports whether a run can be made of the Spec: one line naming the field and what is allowed.
func (s Spec) Check() error {
	_, err := s.compile()
	return err
}

// Site is the host of the first seed, which names the run in lists; empty when the Spec does not pass Check.
func (s Spec) Site() string {
	r, err := s.compile()
	if err != nil {
		return ""
	}
	return r.seeds[0].Host
}

// Encode gives the JSON form stored with a run.
func (s Spec) Encode() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("crawl: encode spec: %v", err)) // strings and numbers only: cannot fail
	}
	return b
}

// DecodeSpec reads the JSON form.
func DecodeSpec(b []byte) (Spec, error) {
	var s Spec
	if err := json.Unmarshal(b, &s); err != nil {
		return Spec{}, fmt.Errorf("definition of the run: %w", err)
	}
	return s, nil
}
