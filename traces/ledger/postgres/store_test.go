//go:build unix

package postgres_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/postgres"
	"pgfsm/traces/ledger/postgres/pgtest"
	"pgfsm/traces/ledger/storetest"
)

// shared has a database with a ledger and its roles for each test.
var shared pgtest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// The roles of a ledger.
const (
	serves = "pgfsm_serve"
	prunes = "pgfsm_prune"
)

// lease is that of the tests: long enough for a slow machine.
const lease = 9 * time.Second

// fresh makes a database for a test and returns the URL that leads a role to it.
func fresh(t testing.TB, role string) string {
	t.Helper()
	c, name := shared.Database(t)
	return c.URL(role, name) + "&lease=" + lease.String()
}

func openStore(t testing.TB, url string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(url)
	check.NoError(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, harness(func(t testing.TB) string { return fresh(t, prunes) }))
}

// harness returns the harness of stores at new URLs.
func harness(newURL func(testing.TB) string) storetest.Harness {
	return storetest.Harness{
		New: newURL,
		Open: func(t testing.TB, url string) ledger.Store {
			t.Helper()
			s, err := postgres.Open(url)
			check.NoError(t, err)
			return s
		},
		Query: func(t testing.TB, url, query string) [][]string {
			t.Helper()
			url, _, _ = strings.Cut(url, "&lease=")
			conn, err := pgconn.Connect(t.Context(), url)
			check.NoError(t, err)
			defer conn.Close(context.Background())
			results, err := conn.Exec(t.Context(), query).ReadAll()
			check.NoError(t, err)

			table := make([][]string, 1, 1+len(results[0].Rows))
			for _, column := range results[0].FieldDescriptions {
				table[0] = append(table[0], column.Name)
			}
			for _, values := range results[0].Rows {
				row := make([]string, len(values))
				for i, v := range values {
					row[i] = string(v)
					if v == nil {
						row[i] = "NULL"
					}
				}
				table = append(table, row)
			}
			return table
		},
	}
}
