package sqlstore_test

import (
	"testing"

	"deepcrawl/storage/sqlstore"
	"deepcrawl/storage/storagetest"
)

func TestUsers(t *testing.T) {
	engines(t, func(t *testing.T, dsn string) {
		opener(t, dsn)
		storagetest.RunUsers(t, func(t testing.TB) storagetest.UserStore { return openStore(t, dsn, sqlstore.Options{}) })
	})
}
