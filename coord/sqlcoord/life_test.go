package sqlcoord_test

import (
	"errors"
	"testing"

	"deepcrawl/coord"
	"deepcrawl/coord/sqlcoord"
	"deepcrawl/internal/sqldb"
	"deepcrawl/internal/testenv"
)

// The first beat after MariaDB was restarted finds the server without a life, after it has been executed. It must not be executed
// again: that would fence the session.
func TestTheFirstBeatAfterARestartFencesNobody(t *testing.T) {
	dsn := testenv.MySQL(t)
	if _, err := sqlcoord.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	c := open(t, dsn, sqlcoord.Options{})
	r, err := c.Register(t.Context(), coord.Registration{Node: "n1", Role: coord.RoleNode})
	if err != nil {
		t.Fatal(err)
	}
	beat := func(seq uint64) error {
		_, err := c.Beat(t.Context(), coord.Beat{Member: r.Member, Seq: seq})
		return err
	}
	if err := beat(1); err != nil {
		t.Fatal(err)
	}
	db, err := sqldb.Open(t.Context(), dsn, sqldb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Do(t.Context(), func(tx *sqldb.Tx) error {
		tx.Exec(sqldb.MySQL.Statement("DELETE FROM coord_life")) // as a restart does
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := beat(2); err != nil && !errors.Is(err, coord.ErrUnknown) {
		t.Errorf("the first beat: got %v, want none or that its outcome is unknown", err)
	}
	if err := beat(3); err != nil {
		t.Errorf("the next: %v", err)
	}
}
