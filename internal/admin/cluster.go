package admin

import (
	"context"
	"net/http"
	"sync"
	"time"

	"deepcrawl/internal/show"
)

// looked keeps the last look at the cluster for all who watch it, and the slots in use over the last minutes.
type looked struct {
	mu      sync.Mutex
	at      time.Time
	cluster show.Cluster
	hosts   []show.Host
	history []int // slots in use, oldest first
}

const (
	lookFresh  = time.Second // a look not older than this is shown to all who watch
	maxHistory = 120
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
		used := 0
		for _, h := range c.Hosts {
			used += h.Slots
		}
		l.at, l.cluster, l.hosts = now, c, hosts
		if l.history = append(l.history, used); len(l.history) > maxHistory {
			l.history = append([]int(nil), l.history[len(l.history)-maxHistory:]...)
		}
	}
	p := clusterPage{Cluster: l.cluster, Blocked: l.hosts, Spark: sparkline(l.history)}
	for _, h := range l.cluster.Hosts {
		p.Used += h.Slots
	}
	for _, n := range l.cluster.Nodes {
		p.Late += n.Late
		p.Workers += n.Workers
	}
	return p, nil
}

type clusterPage struct {
	show.Cluster
	Blocked []show.Host `json:"blocked"` // banned or paused hosts

	Used    int       `json:"slots_used"`
	Workers int       `json:"workers"`
	Late    int       `json:"late_refused"`
	Spark   sparkLine `json:"-"`
	Said    string    `json:"-"` // what a change came to
	Error   string    `json:"-"`
	Host    string    `json:"-"`
	Why     string    `json:"-"`
}

func (clusterPage) title() string { return say("cluster.title") }

// shownRows bounds the rows of each table of the cluster page.
const shownRows = 50

// Rows beyond shownRows are counted, not shown.
func (p clusterPage) HostRows() []show.HostSlots { return first(p.Hosts) }

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
	p.Said = show.Clip(q.r.URL.Query().Get("said"), 300)
	return q.show("cluster", p)
}

func (s *Server) clusterLive(q *request) error {
	return q.live("cluster-live", func(ctx context.Context) (any, bool, error) {
		p, err := s.look(ctx)
		return p, false, err
	})
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
	if err != nil && !q.api {
		if status, text := q.verdict(err); status < 500 {
			p, err := s.look(q.r.Context())
			if err != nil {
				return err
			}
			p.Error, p.Host, p.Why = text, f.Get("host"), f.Get("reason")
			q.render(status, "cluster", p)
			return nil
		}
	}
	if err != nil {
		return err
	}
	s.Log.Info("host", "action", action, "host", f.Get("host"), "user", q.user.Name)
	s.looked.mu.Lock()
	s.looked.at = time.Time{}
	s.looked.mu.Unlock()
	return q.done(http.StatusOK, map[string]string{"host": f.Get("host"), "state": said}, "/cluster?said="+escape(said)+"#hosts")
}
