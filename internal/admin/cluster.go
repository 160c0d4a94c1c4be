package admin

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"deepcrawl/coord"
	"deepcrawl/crawl"
	"deepcrawl/internal/show"
)

// looked keeps the last look at the cluster for all who watch it.
type looked struct {
	mu      sync.Mutex
	at      time.Time
	cluster show.Cluster
	hosts   []show.Host
	history history
}

const (
	lookFresh   = time.Second      // a look not older than this is shown to all who watch
	sampleEvery = 10 * time.Second // also while nobody watches
)

// look reads the cluster, or returns what another has read just now.
func (s *Server) look(ctx context.Context) (clusterPage, error) {
	l := &s.looked
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := s.Now(); l.at.IsZero() || now.Sub(l.at) >= lookFresh || now.Before(l.at) {
		c, err := s.Operations.Cluster(ctx)
		if err != nil {
			return clusterPage{}, err
		}
		hosts, err := s.Operations.Hosts(ctx)
		if err != nil {
			return clusterPage{}, err
		}
		l.at, l.cluster, l.hosts = now, c, hosts
		l.history.add(now, c.Hosts)
	}
	p := clusterPage{Cluster: l.cluster, Blocked: l.hosts, Redis: s.Operations.HasRedis()}
	for i, h := range l.cluster.Hosts {
		if p.Used += h.Slots; i < shownRows {
			p.rows = append(p.rows, hostRow{h, l.history.of(h)})
		}
	}
	for _, n := range l.cluster.Nodes {
		p.Late += n.Late
		p.Workers += n.Workers
	}
	return p, nil
}

// hostRow is a host with the slots it had over the last time.
type hostRow struct {
	show.HostSlots
	Spark sparkLine
}

type clusterPage struct {
	show.Cluster
	Blocked []show.Host `json:"blocked"` // banned or paused hosts

	Used    int    `json:"slots_used"`
	Workers int    `json:"workers"`
	Late    int    `json:"late_refused"`
	Redis   bool   `json:"redis"` // there is a Redis that coordination may go to
	Said    string `json:"-"`     // what a change came to
	Error   string `json:"-"`
	Host    string `json:"-"`
	Why     string `json:"-"`

	rows []hostRow
}

func (clusterPage) title() string { return say("cluster.title") }

// Notes are the warnings but that of Redis, which has a place of its own.
func (p clusterPage) Notes() (out []show.Warning) {
	for _, w := range p.Warnings {
		if p.Coordination.Away == "" || w.Text != p.Coordination.Away {
			out = append(out, w)
		}
	}
	return out
}

// Cooled says whether a host is left alone after trouble, rather than having asked for a pause.
func cooled(h show.Host) bool { return strings.HasPrefix(h.Pause, crawl.CooldownReason) }

// shownRows bounds the rows of each table of the cluster page.
const shownRows = 50

// HostRows are the hosts that are shown; what is beyond is counted.
func (p clusterPage) HostRows() []hostRow { return p.rows }

// WaitingRows are the runs in the queue that are shown.
func (p clusterPage) WaitingRows() []show.ClusterRun { return first(p.Waiting) }

// ActiveRows are the runs under way that are shown.
func (p clusterPage) ActiveRows() []show.ClusterRun { return first(p.Active) }

// BlockedRows are the banned and paused hosts that are shown.
func (p clusterPage) BlockedRows() []show.Host { return first(p.Blocked) }

func first[T any](rows []T) []T { return rows[:min(len(rows), shownRows)] }

func (s *Server) cluster(q *request) error {
	p, err := s.look(q.r.Context())
	if err != nil {
		return err
	}
	// Only this server's own redirect says what a change came to: another site's link must not put words here.
	if from := q.r.Header.Get("Sec-Fetch-Site"); from == "" || from == "same-origin" {
		p.Said = show.Clip(q.r.URL.Query().Get("said"), 300)
	}
	return q.show("cluster", p)
}

func (s *Server) clusterLive(q *request) error {
	return q.live([]string{"cluster-head", "cluster-rest"}, func(ctx context.Context) (any, bool, error) {
		p, err := s.look(ctx)
		return p, false, err
	})
}

// slots is for the picture of slots over time.
func (s *Server) slots(q *request) error {
	if _, err := s.look(q.r.Context()); err != nil {
		return err
	}
	if !q.api {
		http.Redirect(q.w, q.r, "/cluster#slots", http.StatusSeeOther)
		return nil
	}
	s.looked.mu.Lock()
	p := s.looked.history.page()
	s.looked.mu.Unlock()
	return q.show("", p)
}

// sample looks at the cluster now and then, so that the slots' history is whole whoever watches.
func (s *Server) sample(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	if _, err := s.look(ctx); err != nil {
		s.Log.Debug("sample the slots", "err", err)
	}
}

func (s *Server) coordinate(q *request) error {
	f, err := q.form()
	if err != nil {
		return err
	}
	mode := f.Get("mode")
	said, err := s.Operations.Coordinate(q.r.Context(), coord.Mode(mode))
	if err != nil {
		return s.clusterMistake(q, err, clusterPage{})
	}
	s.Log.Info("coordination", "mode", mode, "user", q.user.Name)
	s.forget()
	return q.done(http.StatusOK, map[string]string{"mode": mode, "state": said}, "/cluster?said="+escape(said)+"#coordination")
}

// forget makes the next look a new one.
func (s *Server) forget() {
	s.looked.mu.Lock()
	s.looked.at = time.Time{}
	s.looked.mu.Unlock()
}

// clusterMistake shows a person's mistake on the cluster page, with what was entered.
func (s *Server) clusterMistake(q *request, err error, entered clusterPage) error {
	status, text := q.verdict(err)
	if q.api || status >= 500 {
		return err
	}
	p, err := s.look(q.r.Context())
	if err != nil {
		return err
	}
	p.Error, p.Host, p.Why = text, entered.Host, entered.Why
	q.render(status, "cluster", p)
	return nil
}

type hostsPage struct {
	Hosts []show.Host `json:"hosts"`
}

func (hostsPage) title() string { return say("cluster.hosts") }

// hosts is for programs; people find them on the cluster page.
func (s *Server) hosts(q *request) error {
	if !q.api {
		http.Redirect(q.w, q.r, "/cluster#hosts", http.StatusSeeOther)
		return nil
	}
	list, err := s.Operations.Hosts(q.r.Context())
	if err != nil {
		return err
	}
	if list == nil {
		list = []show.Host{}
	}
	return q.show("", hostsPage{list})
}

func (s *Server) steerHost(q *request) error {
	action := q.r.PathValue("action")
	if action != "ban" && action != "unban" && action != "clear" {
		return errNoAction
	}
	f, err := q.form()
	if err != nil {
		return err
	}
	said, err := s.Operations.SteerHost(q.r.Context(), action, f.Get("host"), f.Get("reason"))
	if err != nil {
		return s.clusterMistake(q, err, clusterPage{Host: f.Get("host"), Why: f.Get("reason")})
	}
	s.Log.Info("host", "action", action, "host", f.Get("host"), "user", q.user.Name)
	s.forget()
	return q.done(http.StatusOK, map[string]string{"host": f.Get("host"), "state": said}, "/cluster?said="+escape(said)+"#hosts")
}
