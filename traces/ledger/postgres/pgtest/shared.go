//go:build unix

package pgtest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"pgfsm/internal/test/check"
)

// Shared is one cluster for all tests of a package: each test gets a database of its own, with a ledger. The zero value is ready to use.
type Shared struct {
	once    sync.Once
	cluster *Cluster // has the database from which the others are copied
	err     error
	count   atomic.Int64
}

// Main runs a package's tests and stops the cluster. It is for TestMain, which passes its result to os.Exit.
func (s *Shared) Main(m *testing.M) int {
	code := m.Run()
	if s.cluster != nil {
		s.cluster.Remove()
	}
	return code
}

// Cluster returns the cluster. The first call starts it. Tests that stop the cluster or change its settings use [Start].
func (s *Shared) Cluster(t testing.TB) *Cluster {
	t.Helper()
	bin := Find(t)
	s.once.Do(func() {
		if s.cluster, s.err = create(bin); s.err != nil {
			return
		}
		if s.err = s.cluster.Exec(context.Background(), "postgres", "CREATE DATABASE prepared"); s.err == nil {
			s.err = s.cluster.Ledger(context.Background(), "prepared")
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.cluster
}

// Database copies the prepared database and returns the copy's name. The test's end drops it.
func (s *Shared) Database(t testing.TB) (*Cluster, string) {
	t.Helper()
	c := s.Cluster(t)
	name := fmt.Sprintf("test%d", s.count.Add(1))
	check.NoError(t, c.Exec(t.Context(), "postgres", "CREATE DATABASE "+name+" TEMPLATE prepared"))
	t.Cleanup(func() {
		if err := c.Exec(context.Background(), "postgres", "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return c, name
}

// URL makes a database like [Shared.Database], and returns its URL for the superuser.
func (s *Shared) URL(t testing.TB) string {
	t.Helper()
	c, name := s.Database(t)
	return c.URL(Superuser, name)
}
