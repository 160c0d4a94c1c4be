package sqlstore_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage/sqlstore"
)

func TestEveryStatementIsUnderstood(t *testing.T) {
	engines(t, func(t *testing.T, dsn string) {
		opener(t, dsn)
		s := openStore(t, dsn, sqlstore.Options{})
		for _, name := range s.Set().Names() {
			st := s.Set().Get(name)
			if strings.HasPrefix(st.Text(), "SET ") { // cannot be explained; walks over hosts run it
				continue
			}
			if err := s.DB().Prepare(t.Context(), st); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestPortableStatementsAreUnderstoodToo(t *testing.T) {
	// MySQL has no ON CONFLICT: what needs one there is overridden.
	engines(t, func(t *testing.T, dsn string) {
		opener(t, dsn)
		s := openStore(t, dsn, sqlstore.Options{})
		if s.DB().Dialect() == sqldb.MySQL {
			for _, name := range s.Set().Names() {
				if strings.Contains(s.Set().Get(name).Text(), "ON CONFLICT") {
					t.Errorf("%s needs an override", name)
				}
			}
			return
		}
		portable, err := sqldb.LoadPortable(os.DirFS("query"), s.DB().Dialect())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range portable.Names() {
			if err := s.DB().Prepare(t.Context(), portable.Get(name)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, name := range s.Set().Overridden() {
			if !slices.Contains(portable.Names(), name) {
				t.Errorf("%s has no portable statement", name)
			}
		}
	})
}
