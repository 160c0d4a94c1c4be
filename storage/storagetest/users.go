package storagetest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"deepcrawl/storage"
)

// UserStore is a store that also keeps users.
type UserStore interface {
	storage.Store
	storage.Users
	storage.Timelines
}

// RunUsers is the suite of the role [storage.Users]; it begins with an empty database.
func RunUsers(t *testing.T, open func(testing.TB) UserStore) {
	s, ctx := open(t), t.Context()
	offered, wrong := storage.SecretHash{1}, storage.SecretHash{2}
	boss := storage.User{Name: "boss", Role: storage.RoleOperator, Hash: "h1"}
	t.Run("the first user is made with the secret offered, once", func(t *testing.T) {
		check(t, s.OfferSetUp(ctx, wrong, time.Hour))
		check(t, s.OfferSetUp(ctx, offered, time.Hour)) // replaces the first
		if must(s.SetUpOpen(ctx, wrong))(t) || !must(s.SetUpOpen(ctx, offered))(t) {
			t.Error("the wrong secret is open, or the right one is not")
		}
		wantErr(t, s.SetUp(ctx, wrong, boss), storage.ErrState)
		var wg sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			s := open(t)
			wg.Go(func() { errs[i] = s.SetUp(ctx, offered, boss) })
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if !errors.Is(err, storage.ErrState) {
				t.Errorf("got %v", err)
			}
		}
		if won != 1 {
			t.Errorf("%d set it up", won)
		}
		wantErr(t, s.OfferSetUp(ctx, offered, time.Hour), storage.ErrState)
		if must(s.SetUpOpen(ctx, offered))(t) {
			t.Error("the secret is open still")
		}
	})
	addTenant(t, s, "acme", storage.Tariff{})
	ann := storage.User{Name: "ann@acme.example", Role: storage.RoleMember, Tenant: "acme", Hash: "h2"}
	t.Run("users are stored as they were described", func(t *testing.T) {
		check(t, s.PutUser(ctx, ann))
		list := must(open(t).Users(ctx))(t)
		if len(list) != 2 || list[0].Name != ann.Name || list[0].Tenant != "acme" || list[0].Role != storage.RoleMember || list[0].Hash != "h2" || list[1].Name != "boss" {
			t.Errorf("got %+v", list)
		}
		_, err := s.User(ctx, "nobody")
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("what makes no sense is refused", func(t *testing.T) {
		wantErr(t, s.PutUser(ctx, storage.User{Name: "x", Role: storage.RoleMember, Tenant: "nosuch", Hash: "h"}), storage.ErrNotFound)
		wantErr(t, s.PutUser(ctx, storage.User{Name: "x", Role: storage.RoleOperator}), storage.ErrNotFound)
		for _, bad := range []storage.User{
			{}, {Name: "A", Role: storage.RoleOperator, Hash: "h"}, {Name: "a b", Role: storage.RoleOperator, Hash: "h"}, {Name: "a", Role: "king", Hash: "h"},
			{Name: "a", Role: storage.RoleMember, Hash: "h"}, {Name: "a", Role: storage.RoleOperator, Tenant: "acme", Hash: "h"},
		} {
			if err := s.PutUser(ctx, bad); err == nil {
				t.Errorf("%+v was taken", bad)
			}
		}
	})
	t.Run("a session lasts until its time is over or it is dropped", func(t *testing.T) {
		check(t, s.AddSession(ctx, storage.SecretHash{10}, ann.Name, time.Hour))
		check(t, s.AddSession(ctx, storage.SecretHash{11}, ann.Name, -time.Second))
		if u := must(open(t).Session(ctx, storage.SecretHash{10}))(t); u.Name != ann.Name || u.Tenant != "acme" {
			t.Errorf("got %+v", u)
		}
		for _, gone := range []storage.SecretHash{{11}, {12}, {}} {
			_, err := s.Session(ctx, gone)
			wantErr(t, err, storage.ErrNotFound)
		}
		check(t, s.PruneSessions(ctx))
		check(t, s.DropSession(ctx, storage.SecretHash{10}))
		check(t, s.DropSession(ctx, storage.SecretHash{10}))
		_, err := s.Session(ctx, storage.SecretHash{10})
		wantErr(t, err, storage.ErrNotFound)
		wantErr(t, s.AddSession(ctx, storage.SecretHash{13}, "nobody", time.Hour), storage.ErrNotFound)
	})
	t.Run("a changed password ends sessions, an empty one keeps it", func(t *testing.T) {
		check(t, s.AddSession(ctx, storage.SecretHash{20}, ann.Name, time.Hour))
		same := ann
		same.Hash = ""
		check(t, s.PutUser(ctx, same))
		if u := must(s.Session(ctx, storage.SecretHash{20}))(t); u.Hash != "h2" {
			t.Errorf("got %+v", u)
		}
		same.Hash = "h3"
		check(t, s.PutUser(ctx, same))
		_, err := s.Session(ctx, storage.SecretHash{20})
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("a token is good until it is revoked", func(t *testing.T) {
		check(t, s.AddToken(ctx, storage.SecretHash{30}, storage.Token{ID: "t1", User: ann.Name, Label: "nightly \u00e9"}))
		if u := must(s.TokenUser(ctx, storage.SecretHash{30}))(t); u.Name != ann.Name {
			t.Errorf("got %+v", u)
		}
		list := must(s.Tokens(ctx, ann.Name))(t)
		if len(list) != 1 || list[0].ID != "t1" || list[0].Label != "nightly \u00e9" || list[0].Used.IsZero() || time.Since(list[0].Created) > time.Minute {
			t.Errorf("got %+v", list)
		}
		wantErr(t, s.RevokeToken(ctx, "boss", "t1"), storage.ErrNotFound)
		check(t, s.RevokeToken(ctx, ann.Name, "t1"))
		wantErr(t, s.RevokeToken(ctx, "", "t1"), storage.ErrNotFound)
		_, err := s.TokenUser(ctx, storage.SecretHash{30})
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("the last operator stays", func(t *testing.T) {
		wantErr(t, s.DropUser(ctx, "boss"), storage.ErrState)
		wantErr(t, s.PutUser(ctx, storage.User{Name: "boss", Role: storage.RoleViewer, Tenant: "acme"}), storage.ErrState)
		check(t, s.PutUser(ctx, storage.User{Name: "second", Role: storage.RoleOperator, Hash: "h"}))
		check(t, s.DropUser(ctx, "second"))
		wantErr(t, s.DropUser(ctx, "second"), storage.ErrNotFound)
	})
	t.Run("a tenant's users go with it", func(t *testing.T) {
		check(t, s.AddSession(ctx, storage.SecretHash{40}, ann.Name, time.Hour))
		check(t, s.AddToken(ctx, storage.SecretHash{41}, storage.Token{ID: "t2", User: ann.Name}))
		for done := false; !done; {
			var err error
			done, err = s.DeleteTenant(ctx, "acme", 10)
			check(t, err)
		}
		_, err := s.User(ctx, ann.Name)
		wantErr(t, err, storage.ErrNotFound)
		addTenant(t, s, "acme", storage.Tariff{})
		check(t, s.PutUser(ctx, ann))
		_, err = s.Session(ctx, storage.SecretHash{40})
		wantErr(t, err, storage.ErrNotFound)
		_, err = s.TokenUser(ctx, storage.SecretHash{41})
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("a timeline counts finished URLs", func(t *testing.T) {
		run := crawling(t, s)
		discover(t, s, run, finds(0, 3)...)
		claims := claim(t, s, "n/1", run, 3)
		finish(t, s, "n/1", fetched(claims[0]), ended(claims[1], storage.Failed, "timeout", 0))
		var sum storage.Bucket
		for _, b := range must(s.Timeline(ctx, run, time.Minute))(t) {
			if b.From.UnixMicro()%time.Minute.Microseconds() != 0 || time.Since(b.From) > 5*time.Minute {
				t.Errorf("begins at %v", b.From)
			}
			sum.Fetched, sum.Failed, sum.Excluded = sum.Fetched+b.Fetched, sum.Failed+b.Failed, sum.Excluded+b.Excluded
		}
		if sum.Fetched != 1 || sum.Failed != 1 || sum.Excluded != 0 {
			t.Errorf("got %+v", sum)
		}
	})
}
