package e2e

import "testing"

// TestServeIdentityOnPostgres is [TestServeIdentity] on a database.
func TestServeIdentityOnPostgres(t *testing.T) {
	t.Parallel()
	testServeIdentity(t, databases(t))
}

// TestCredentialsStayOutOnPostgres is [TestCredentialsStayOut] on a database.
func TestCredentialsStayOutOnPostgres(t *testing.T) {
	t.Parallel()
	testCredentialsStayOut(t, databases(t))
}

// TestCorpusRepeatsCredentialsOnPostgres is [TestCorpusRepeatsCredentials] on a database.
func TestCorpusRepeatsCredentialsOnPostgres(t *testing.T) {
	t.Parallel()
	testCorpusRepeatsCredentials(t, databases(t)(t, "corpus"))
}

// databases makes databases for a test of the cluster.
func databases(t *testing.T) func(t *testing.T, name string) string {
	t.Helper()
	onPostgres(t)
	return func(t *testing.T, _ string) string {
		t.Helper()
		c, name := cluster.Database(t)
		return c.URL("pgfsm_serve", name)
	}
}
