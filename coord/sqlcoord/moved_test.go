package sqlcoord_test

import (
	"os"
	"path/filepath"
	"testing"

	"deepcrawl/coord"
	"deepcrawl/coord/session"
	"deepcrawl/coord/sqlcoord"
)

// A file that was moved is the same; one that was copied while a session was live in it starts anew at once: nobody works on the copy.
func TestAMovedOrCopiedFileIsWorkedAtOnce(t *testing.T) {
	for name, change := range map[string]func(from, to string) error{
		"moved": os.Rename,
		"copied": func(from, to string) error {
			b, err := os.ReadFile(from)
			if err != nil {
				return err
			}
			return os.WriteFile(to, b, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			from, to := filepath.Join(dir, "a.db"), filepath.Join(dir, "b.db")
			first, err := sqlcoord.Open(t.Context(), "sqlite:"+from, sqlcoord.Options{Create: true})
			if err != nil {
				t.Fatal(err)
			}
			s, err := session.Join(t.Context(), first, coord.Options{Node: "n1", Role: coord.RoleNode})
			if err != nil {
				t.Fatal(err)
			}
			was, err := s.Lease(t.Context(), "leader", coord.DefaultTiming().LeaseTTL)
			if err != nil {
				t.Fatal(err)
			}
			if name == "moved" {
				if err := s.Leave(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := first.Close(); err != nil { // the copied one's session stays live in the file, as after kill -9
				t.Fatal(err)
			}
			if err := change(from, to); err != nil {
				t.Fatal(err)
			}
			second := open(t, "sqlite:"+to, sqlcoord.Options{})
			again, err := session.Join(t.Context(), second, coord.Options{Node: "n1", Role: coord.RoleNode})
			if err != nil {
				t.Fatalf("join: %v", err)
			}
			permits, err := again.Acquire(t.Context(), coord.Need{Keys: []coord.CappedKey{{Key: "host:a.example", Cap: 1}}, N: 1})
			if err != nil || len(permits) != 1 {
				t.Fatalf("got %d permits, %v", len(permits), err)
			}
			lease, err := again.Lease(t.Context(), "leader", coord.DefaultTiming().LeaseTTL)
			if err != nil {
				t.Fatalf("lease: %v", err)
			}
			if !was.Fence().Less(lease.Fence()) {
				t.Errorf("fence %v does not follow %v", lease.Fence(), was.Fence())
			}
			permits[0].Release()
			if err := again.Leave(t.Context()); err != nil {
				t.Error(err)
			}
			_ = s.Leave(t.Context()) // its database is closed: it only stops
		})
	}
}
