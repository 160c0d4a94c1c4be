package storage

import (
	"context"
	"time"
)

// Tariff is the named set of limits of a tenant. 0 is no limit.
type Tariff struct {
	Name string // letters, digits, '-', '_'; up to 32
	// Parallel (deep_parallel) bounds the tenant's active runs; the rest wait, oldest first.
	Parallel int
	// Workers (deep_workers) bounds the seats on one run.
	Workers int
	// RunPages bounds the pages of one run, StoredPages those stored of the tenant over all runs.
	RunPages    int
	StoredPages int64
}

// Tenant is who a run belongs to.
type Tenant struct {
	Name      string // letters, digits, '-', '_', '.'; up to 64
	Tariff    string
	Suspended bool // its runs are not served
	Deleting  bool // being removed: not served
	Created   time.Time
}

// BuiltinTariffs exist in every new database; they can be changed. DefaultTenant has "unlimited".
func BuiltinTariffs() []Tariff {
	return []Tariff{
		{Name: "unlimited"},
		{Name: "small", Parallel: 1, Workers: 1, RunPages: 10_000, StoredPages: 100_000},
		{Name: "medium", Parallel: 3, Workers: 4, RunPages: 100_000, StoredPages: 1_000_000},
		{Name: "large", Parallel: 10, Workers: 12, RunPages: 1_000_000, StoredPages: 20_000_000},
	}
}

// Tenants keeps tenants and their tariffs. Changes take effect on running crawls at the next Pick of each worker.
type Tenants interface {
	// PutTariff creates a tariff or changes it.
	PutTariff(ctx context.Context, t Tariff) error
	// Tariffs lists them by name.
	Tariffs(ctx context.Context) ([]Tariff, error)
	// PutTenant creates a tenant or changes its tariff and suspension; ErrNotFound for an unknown tariff, ErrState for a tenant being
	// deleted.
	PutTenant(ctx context.Context, t Tenant) error
	// Tenant returns one with its tariff; ErrNotFound.
	Tenant(ctx context.Context, name string) (Tenant, Tariff, error)
	// Tenants lists them by name, those being deleted too: somebody may have to go on with it.
	Tenants(ctx context.Context) ([]Tenant, error)
	// DeleteTenant removes everything of a tenant in small pieces, as DeleteRun does for a run (active runs are cancelled first);
	// it MUST be called until done; another process may go on with it. From the first call on the tenant takes no new runs or schedules.
	// ErrState for DefaultTenant, ErrNotFound.
	DeleteTenant(ctx context.Context, name string, limit int) (done bool, err error)
	// StoredPages is the number of pages stored of a tenant over all its runs: those requested, so fetched and failed ones, as they
	// count under a run's page limit. Runs being deleted do not count. ErrNotFound.
	StoredPages(ctx context.Context, name string) (int64, error)
}

// Waiting is an unfinished run with what decides whether it is served, for people and for the words of `run why`.
type Waiting struct {
	Run      Run
	Occupied int       // seats taken
	Allowed  int       // seats allowed by tariff and profile, 0 unlimited
	Served   time.Time // when it was last picked
	Active   int       // active runs of its tenant
	Tariff   Tariff
	// Suspended: its tenant is. Ahead: runs of the tenant before it in the queue.
	Suspended bool
	Ahead     int
}

// Queue tells operators what waits for what.
type Queue interface {
	// Unfinished returns all runs that are not over, oldest first; at most limit.
	Unfinished(ctx context.Context, limit int) ([]Waiting, error)
	// Claims counts the claims and seats each owner holds now.
	Claims(ctx context.Context) ([]OwnerLoad, error)
	// FindURL returns what a run knows of one URL, unfinished or not; ErrNotFound. Of a claimed URL it gives the owner, of a
	// delayed one when it is due.
	FindURL(ctx context.Context, run RunID, key Key) (URLWait, error)
}

// OwnerLoad is what an owner holds.
type OwnerLoad struct {
	Owner         Owner
	Claims, Seats int
}

// URLWait is the place of a URL in its run.
type URLWait struct {
	PageRow
	Owner Owner     // of a claimed URL
	Due   time.Time // of a delayed one
	Ahead int64     // queued URLs of its host that leave before it; -1 when it is not queued
}

// Ban keeps every request from a host.
type Ban struct {
	Host   string
	Reason string // of the operator, up to 200 bytes
	Since  time.Time
}

// Bans keeps the hosts nobody may be asked; nodes read the list every few seconds.
type Bans interface {
	// Ban adds a host, or changes its reason. Unban removes it; ErrNotFound when it was not banned.
	Ban(ctx context.Context, host, reason string) error
	Unban(ctx context.Context, host string) error
	Bans(ctx context.Context) ([]Ban, error)
}

// Schedule creates runs at times.
type Schedule struct {
	ID     int64
	Tenant string
	Name   string // up to 100 bytes
	Site   string // as in NewRun
	Spec   []byte // as in NewRun
	// Every is the interval; or Cron is a five-field cron expression in Zone (an IANA name). One of them is set.
	Every   time.Duration
	Cron    string
	Zone    string
	Next    time.Time // when it is due
	LastRun RunID     // 0 none yet
	Created time.Time
}

// Schedules keeps schedules. Who computes the next time is the leader, in package crawl.
type Schedules interface {
	// AddSchedule stores one (ID and Created are set by the store) and returns it.
	AddSchedule(ctx context.Context, s Schedule) (Schedule, error)
	// Schedules lists them by id; an empty tenant means all.
	Schedules(ctx context.Context, tenant string) ([]Schedule, error)
	// RemoveSchedule deletes one; ErrNotFound.
	RemoveSchedule(ctx context.Context, id int64) error
	// DueSchedules returns those whose Next has passed on the server's clock, at most limit.
	DueSchedules(ctx context.Context, limit int) ([]Schedule, error)
	// StartScheduled starts a due schedule's run where the fence holds (ErrFenced): when its last run is still unfinished nothing is
	// created and merged is true, otherwise the run is created and LastRun set. Next moves to next in both cases. In one
	// transaction, and only if Next is still due (else ErrState), so that two leaders never start it twice.
	StartScheduled(ctx context.Context, id int64, next time.Time, run NewRun, fence Fence) (r Run, merged bool, err error)
}
