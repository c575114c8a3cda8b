package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"pgfsm/present"
)

// replicasOf is the document of ledger status.
func replicasOf(t *testing.T, config string) (d present.Replicas) {
	t.Helper()
	got := command(t.Context(), nil, "ledger", "status", "--json", "-c", config)
	got.want(t, exitYes)
	if err := json.Unmarshal([]byte(got.stdout), &d); err != nil {
		t.Fatalf("%v: %s", err, got.stdout)
	}
	return d
}

// TestServeReplicas: ledger status and /replicas list the gateways that run on a ledger. One with another bundle is ready and says so.
func TestServeReplicas(t *testing.T) {
	t.Parallel()
	o := newOffice(t, holdLook, "")
	second := serve(t, o.dir)
	o.writes(t, "policy.yaml", strings.Replace(holdLook, "id: people", "id: others", 1))
	if d := replicasOf(t, o.config); len(d.Replicas) != 2 || d.BundlesDiffer || d.Replicas[0].Bundle != d.Replicas[1].Bundle {
		t.Fatalf("two replicas of one bundle: %+v", d)
	}
	third := serve(t, o.dir)
	if d := replicasOf(t, o.config); len(d.Replicas) != 3 || !d.BundlesDiffer {
		t.Errorf("one of three has another bundle: %+v", d)
	}
	soon(t, "the newest says that the others have another bundle", func() bool {
		_, body := third.gets(t, "/readyz", "")
		return strings.Contains(body, `"warnings":["bundle_differs"]`)
	})
	third.kill()
	second.stop(t, exitYes)
	if d := replicasOf(t, o.config); len(d.Replicas) != 1 || d.BundlesDiffer {
		t.Errorf("one is left: %+v", d)
	}
	code, body := o.gets(t, "/replicas", o.bob)
	if code != http.StatusOK || !strings.Contains(body, replicasOf(t, o.config).Replicas[0].ID) {
		t.Errorf("GET /replicas: %d %s", code, body)
	}
}

// gets reads a path of the admin address.
func (s *served) gets(t *testing.T, path, token string) (int, string) {
	t.Helper()
	headers := http.Header{}
	if token != "" {
		headers.Set("Authorization", "Bearer "+token)
	}
	resp, err := send(t.Context(), http.MethodGet, s.admin+path, headers, "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}
