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
	"pgfsm/internal/test/check"
)

// TestRotatedKey: an unknown key id is fetched at most once a minute, and in between it is not known whether the token is good.
func TestRotatedKey(t *testing.T) {
	rig := newRig(t)
	old := rig.Sign(nil)
	if _, err := rig.agent(t, old); err != nil {
		t.Fatal(err)
	}
	rig.clock = rig.clock.Add(20 * time.Second)
	rig.AddKey(jose.ES256)
	rotated := rig.Sign(nil)
	if _, err := rig.agent(t, rotated); retry(err) != 40*time.Second || rig.Requests("/jwks") != 1 {
		t.Errorf("20 s after a fetch: %v, %d fetches", err, rig.Requests("/jwks"))
	}
	if _, err := rig.agent(t, old); err != nil {
		t.Error("the key that is known:", err)
	}
	rig.clock = rig.clock.Add(40 * time.Second)
	if _, err := rig.agent(t, rotated); err != nil || rig.Requests("/jwks") != 2 {
		t.Errorf("a minute after a fetch: %v, %d fetches", err, rig.Requests("/jwks"))
	}
	if _, err := rig.agent(t, old); err != nil {
		t.Error("the key that is still published:", err)
	}
	for range 50 {
		rig.clock = rig.clock.Add(time.Second)
		if _, err := rig.agent(t, rig.Sign(nil, identitytest.Header("kid", "unknown"))); retry(err) == 0 {
			t.Fatal(err)
		}
	}
	if n := rig.Requests("/jwks"); n != 2 {
		t.Errorf("unknown key ids caused %d fetches in a minute", n)
	}
	rig.clock = rig.clock.Add(10 * time.Second)
	if _, err := rig.agent(t, rig.Sign(nil, identitytest.Header("kid", "unknown"))); !refused(err) {
		t.Error("an unknown key id, just after a fetch:", err)
	}
}

// TestRemovedKey: the verified tokens of a key go with it.
func TestRemovedKey(t *testing.T) {
	rig := newRig(t)
	old := rig.Sign(nil)
	if _, err := rig.agent(t, old); err != nil {
		t.Fatal(err)
	}
	rig.AddKey(jose.ES256)
	rig.RemoveKey("key-1")
	rig.clock = rig.clock.Add(time.Minute)
	if _, err := rig.agent(t, rig.Sign(nil)); err != nil { // this fetches
		t.Fatal(err)
	}
	if c, err := rig.agent(t, old); err == nil {
		t.Errorf("a token of the removed key is that of %s", c.Name)
	}
	rig.clock = rig.clock.Add(time.Minute)
	if _, err := rig.agent(t, old); !refused(err) {
		t.Error("a token of the removed key, a minute later:", err)
	}
}

// TestCancelledRequest: a client that goes away does not use up the one fetch.
func TestCancelledRequest(t *testing.T) {
	rig := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	rig.Override("/jwks", func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		identitytest.Answer(w, http.StatusOK, rig.KeySet())
	})
	agents := rig.providers.Agents(func(*http.Request) []string { return []string{endpoint} }, nil)
	if _, err := agents.Authenticate(request(rig.Sign(nil)).WithContext(ctx)); err != nil {
		t.Error(err)
	}
	if _, err := rig.agent(t, rig.Sign(nil)); err != nil || rig.Requests("/jwks") != 1 {
		t.Errorf("%v, %d fetches", err, rig.Requests("/jwks"))
	}
}

// TestProviderDown has a provider that is down at start, and again for hours.
func TestProviderDown(t *testing.T) {
	rig := newRig(t)
	rig.SetDown(true)
	if rig.providers.Ready() {
		t.Error("ready before the first fetch")
	}
	if _, err := rig.agent(t, rig.Sign(nil)); retry(err) != 10*time.Second {
		t.Error("down at start:", err)
	}
	if _, err := rig.providers.Endpoints(t.Context(), rig.Issuer); retry(err) == 0 {
		t.Error("endpoints while down:", err)
	}
	if _, err := rig.agent(t, "no-token"); !refused(err) {
		t.Error("what is no token:", err)
	}
	rig.SetDown(false)
	if _, err := rig.agent(t, rig.Sign(nil)); retry(err) == 0 || rig.Requests("/jwks") != 0 {
		t.Error("at once after a failed fetch:", err)
	}
	rig.clock = rig.clock.Add(10 * time.Second)
	first := rig.Sign(nil)
	if _, err := rig.agent(t, first); err != nil || !rig.providers.Ready() {
		t.Error("up:", err, rig.providers.Ready())
	}
	fetched := rig.clock
	rig.SetDown(true)
	rig.clock = fetched.Add(identity.DefaultMaxAge)
	if _, err := rig.agent(t, first); err != nil {
		t.Error("a verified token, as long as the keys may be used:", err)
	}
	if _, err := rig.agent(t, rig.Sign(nil)); err != nil || !rig.providers.Ready() {
		t.Error("as long as the keys may be used:", err, rig.providers.Ready())
	}
	rig.Life = 23 * time.Hour
	long := rig.Sign(nil)
	if _, err := rig.agent(t, long); err != nil {
		t.Error(err)
	}
	for hours := range 3 {
		rig.clock = fetched.Add(identity.DefaultMaxAge + time.Duration(hours)*time.Hour + time.Second)
		if _, err := rig.agent(t, long); retry(err) == 0 {
			t.Errorf("a verified token after %d hours: %v", hours+1, err)
		}
		if _, err := rig.agent(t, rig.Sign(nil)); retry(err) == 0 {
			t.Errorf("another token after %d hours: %v", hours+1, err)
		}
		if rig.providers.Ready() {
			t.Errorf("ready after %d hours", hours+1)
		}
	}
	rig.SetDown(false)
	rig.clock = rig.clock.Add(10 * time.Second)
	if _, err := rig.agent(t, long); err != nil || !rig.providers.Ready() {
		t.Error("up again:", err, rig.providers.Ready())
	}
	for line, want := range map[string]int{"level=WARN": 2, "has new keys": 1, "reached again": 1} { // in any order
		if n := strings.Count(rig.log.String(), line); n != want {
			t.Errorf("two outages and %d lines with %q, want %d:\n%s", n, line, want, &rig.log)
		}
	}
}

// TestRun: keys are replaced every five minutes without a request, and a provider that is down is tried every ten seconds.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := identitytest.Unserved("https://login.example.com")
		p.Audience, p.Life = endpoint, 10*time.Hour
		providers, err := identity.New(identity.Options{Issuers: []identity.Issuer{{URL: p.Issuer}}, Client: p.Client()})
		check.NoError(t, err)
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
		p.SetDown(true)
		after(30 * time.Minute)
		if !providers.Ready() {
			t.Error("not ready half an hour after the provider went down")
		}
		after(31 * time.Minute)
		if providers.Ready() {
			t.Error("ready, though the keys are too old")
		}
		cancel()
		<-done
	})
}

// TestProviderHangs: requests that wait for the keys of a provider share one attempt, and are then told to come again.
func TestProviderHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := identitytest.Unserved("https://login.example.com")
		providers, err := identity.New(identity.Options{Issuers: []identity.Issuer{{URL: p.Issuer}}, Client: p.Client()})
		check.NoError(t, err)
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
