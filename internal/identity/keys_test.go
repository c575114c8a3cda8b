package identity_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"pgfsm/internal/identity"
	"pgfsm/internal/identity/identitytest"
)

// TestRotatedKey: an unknown key id is fetched at most once a minute, and in between it is not known whether the token is good.
func TestRotatedKey(t *testing.T) {
	fixture := newFixture(t)
	old := fixture.Sign(nil)
	if _, err := fixture.agent(t, old); err != nil {
		t.Fatal(err)
	}
	fixture.clock = fixture.clock.Add(20 * time.Second)
	fixture.AddKey(jose.ES256)
	rotated := fixture.Sign(nil)
	if _, err := fixture.agent(t, rotated); retry(err) != 40*time.Second || fixture.Requests("/jwks") != 1 {
		t.Errorf("20 s after a fetch: %v, %d fetches", err, fixture.Requests("/jwks"))
	}
	if _, err := fixture.agent(t, old); err != nil {
		t.Error("the key that is known:", err)
	}
	fixture.clock = fixture.clock.Add(40 * time.Second)
	if _, err := fixture.agent(t, rotated); err != nil || fixture.Requests("/jwks") != 2 {
		t.Errorf("a minute after a fetch: %v, %d fetches", err, fixture.Requests("/jwks"))
	}
	if _, err := fixture.agent(t, old); err != nil {
		t.Error("the key that is still published:", err)
	}
	for range 50 {
		fixture.clock = fixture.clock.Add(time.Second)
		if _, err := fixture.agent(t, fixture.Sign(nil, identitytest.Header("kid", "unknown"))); retry(err) == 0 {
			t.Fatal(err)
		}
	}
	if n := fixture.Requests("/jwks"); n != 2 {
		t.Errorf("unknown key ids caused %d fetches in a minute", n)
	}
	fixture.clock = fixture.clock.Add(10 * time.Second)
	if _, err := fixture.agent(t, fixture.Sign(nil, identitytest.Header("kid", "unknown"))); !refused(err) {
		t.Error("an unknown key id, just after a fetch:", err)
	}
}

// TestRemovedKey: a token that was accepted before is refused after its key is removed.
func TestRemovedKey(t *testing.T) {
	fixture := newFixture(t)
	old := fixture.Sign(nil)
	if _, err := fixture.agent(t, old); err != nil {
		t.Fatal(err)
	}
	fixture.AddKey(jose.ES256)
	fixture.RemoveKey("key-1")
	fixture.clock = fixture.clock.Add(time.Minute)
	if _, err := fixture.agent(t, fixture.Sign(nil)); err != nil { // this fetches
		t.Fatal(err)
	}
	if c, err := fixture.agent(t, old); err == nil {
		t.Errorf("a token of the removed key is that of %s", c.Name)
	}
	fixture.clock = fixture.clock.Add(time.Minute)
	if _, err := fixture.agent(t, old); !refused(err) {
		t.Error("a token of the removed key, a minute later:", err)
	}
}

// TestCancelledRequest: a client that goes away does not use up the one fetch.
func TestCancelledRequest(t *testing.T) {
	fixture := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	fixture.Override("/jwks", func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		identitytest.Answer(w, http.StatusOK, fixture.KeySet())
	})
	agents := fixture.providers.Agents(func(*http.Request) []string { return []string{endpoint} }, nil)
	if _, err := agents.Authenticate(request(fixture.Sign(nil)).WithContext(ctx)); err != nil {
		t.Error(err)
	}
	if _, err := fixture.agent(t, fixture.Sign(nil)); err != nil || fixture.Requests("/jwks") != 1 {
		t.Errorf("%v, %d fetches", err, fixture.Requests("/jwks"))
	}
}

// TestProviderDown has a provider that is down at start, and again for hours.
func TestProviderDown(t *testing.T) {
	fixture := newFixture(t)
	fixture.SetDown(true)
	if fixture.providers.Ready() {
		t.Error("ready before the first fetch")
	}
	if _, err := fixture.agent(t, fixture.Sign(nil)); retry(err) != 10*time.Second {
		t.Error("down at start:", err)
	}
	if _, err := fixture.providers.Endpoints(t.Context(), fixture.Issuer); retry(err) == 0 {
		t.Error("endpoints while down:", err)
	}
	if _, err := fixture.agent(t, "no-token"); !refused(err) {
		t.Error("what is no token:", err)
	}
	fixture.SetDown(false)
	if _, err := fixture.agent(t, fixture.Sign(nil)); retry(err) == 0 || fixture.Requests("/jwks") != 0 {
		t.Error("at once after a failed fetch:", err)
	}
	fixture.clock = fixture.clock.Add(10 * time.Second)
	first := fixture.Sign(nil)
	if _, err := fixture.agent(t, first); err != nil || !fixture.providers.Ready() {
		t.Error("up:", err, fixture.providers.Ready())
	}
	fetched := fixture.clock
	fixture.SetDown(true)
	fixture.clock = fetched.Add(identity.DefaultMaxAge)
	if _, err := fixture.agent(t, first); err != nil || !fixture.providers.Ready() {
		t.Error("as long as the keys may be used:", err, fixture.providers.Ready())
	}
	fixture.Life = 23 * time.Hour
	long := fixture.Sign(nil)
	if _, err := fixture.agent(t, long); err != nil {
		t.Error(err)
	}
	fixture.clock = fetched.Add(identity.DefaultMaxAge + time.Second)
	if _, err := fixture.agent(t, long); retry(err) == 0 || fixture.providers.Ready() {
		t.Errorf("a token of keys that are too old: %v, ready %v", err, fixture.providers.Ready())
	}
	fixture.SetDown(false)
	fixture.clock = fixture.clock.Add(10 * time.Second)
	if _, err := fixture.agent(t, long); err != nil || !fixture.providers.Ready() {
		t.Error("up again:", err, fixture.providers.Ready())
	}
	for line, want := range map[string]int{"level=WARN": 2, "has new keys": 1, "reached again": 1} { // in any order
		if n := strings.Count(fixture.log.String(), line); n != want {
			t.Errorf("two outages and %d lines with %q, want %d:\n%s", n, line, want, &fixture.log)
		}
	}
}

// TestRun: keys are replaced every five minutes without a request, and a provider that is down is tried every ten seconds.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := identitytest.Unserved("https://login.example.com")
		p.Audience, p.Life = endpoint, 10*time.Hour
		providers := identity.New(identity.Options{Issuers: []identity.Issuer{{URL: p.Issuer}}, Client: p.Client()})
		agents := providers.Agents(func(*http.Request) []string { return []string{endpoint} }, nil)
		p.SetDown(true)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			providers.Run(ctx)
		}()
		const metadata = "/.well-known/openid-configuration"
		after := func(d time.Duration) {
			time.Sleep(d) // the time of the bubble
			synctest.Wait()
		}
		after(25 * time.Second)
		if n := p.Requests(metadata); n != 3 || providers.Ready() {
			t.Errorf("%d fetches in 25 seconds, ready: %v", n, providers.Ready())
		}
		p.SetDown(false)
		after(10 * time.Second)
		if !providers.Ready() {
			t.Error("not ready, though the provider is up")
		}
		old := p.Sign(nil)
		if _, err := agents.Authenticate(request(old)); err != nil {
			t.Error(err)
		}
		p.AddKey(jose.ES256)
		p.RemoveKey("key-1")
		after(5 * time.Minute)
		if _, err := agents.Authenticate(request(old)); err == nil {
			t.Error("a key that was removed is still used")
		}
		if _, err := agents.Authenticate(request(p.Sign(nil))); err != nil || p.Requests("/jwks") != 2 {
			t.Errorf("the new key: %v, %d fetches", err, p.Requests("/jwks"))
		}
		cancel()
		<-done
	})
}

// TestProviderHangs: requests that wait for the keys of a provider share one attempt, and are then told to come again.
func TestProviderHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := identitytest.Unserved("https://login.example.com")
		providers := identity.New(identity.Options{Issuers: []identity.Issuer{{URL: p.Issuer}}, Client: p.Client()})
		const metadata = "/.well-known/openid-configuration"
		p.Override(metadata, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		agents := providers.Agents(func(*http.Request) []string { return []string{endpoint} }, nil)
		begun := time.Now()
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if _, err := agents.Authenticate(request(p.Sign(nil))); retry(err) == 0 {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(begun); took > 10*time.Second || p.Requests(metadata) != 1 {
			t.Errorf("%d fetches in %s", p.Requests(metadata), took)
		}
	})
}
