package testenv

import (
	"database/sql"
	"testing"

	_ "modernc.org/sqlite" // registers itself
)

// SQLiteExec runs texts on a connection of their own to a file, outside of transactions and without regard for whose file it is.
func SQLiteExec(t testing.TB, path string, texts ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, text := range texts {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}
