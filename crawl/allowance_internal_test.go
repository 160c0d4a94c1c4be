package crawl

import (
	"context"
	"fmt"
	"testing"

	"deepcrawl/storage"
)

// bounded is a store whose tenants have a tariff that bounds their pages, and whose runs are deleted.
type bounded struct{ clusterStore }

func (bounded) Tenant(context.Context, string) (storage.Tenant, storage.Tariff, error) {
	return storage.Tenant{}, storage.Tariff{Name: "small", StoredPages: 1000}, nil
}

func (bounded) StoredPages(context.Context, string) (int64, error) { return 1, nil }

type deleted struct{ storage.Store }

func (deleted) Ledger(context.Context, storage.RunID) (storage.Ledger, error) {
	return storage.Ledger{}, fmt.Errorf("ledger: %w", storage.ErrNotFound)
}

// TestADeletedRunIsNoFault: a node that still remembers the run would warn every few seconds.
func TestADeletedRunIsNoFault(t *testing.T) {
	j := &job{life: &life{cluster: bounded{}, store: deleted{}}}
	if over, err := j.readAllowance(t.Context()); err != nil || !over {
		t.Errorf("got %v, %v", over, err)
	}
}
