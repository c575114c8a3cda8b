package identity

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"pgfsm/internal/visible"
	"pgfsm/internal/web"
	"pgfsm/internal/web/loopback"
)

// Bounds of the responses of a provider, and of the frequency of requests.
const (
	maxMetadataBytes = 1 << 20
	maxKeySetBytes   = 1 << 20
	fetchTimeout     = 10 * time.Second // for metadata and keys together
	refreshEvery     = 5 * time.Minute
	retryEvery       = 10 * time.Second // while there are no usable keys, or after a failed fetch
	unknownKeyEvery  = time.Minute      // between fetches for requests with an unknown key id
	maxReason        = 500              // bytes of the error of a fetch, in log lines and errors
)

// provider is one identity provider.
type provider struct {
	Issuer
	client  *http.Client
	log     *slog.Logger
	now     func() time.Time
	current atomic.Pointer[snapshot]

	fetching chan struct{} // full during a fetch; only the goroutine that fetches uses the fields below
	tried    time.Time     // the end of the last fetch
	failed   string        // the reason why the last fetch failed; empty if it did not
}

// snapshot is the result of one fetch. It replaces the one before as a whole, so that removed keys
// are not used any more.
type snapshot struct {
	Endpoints
	keys    map[string]key    // the keys by key id
	digest  [sha256.Size]byte // the digest of the key set as it was fetched
	fetched time.Time
}

// usableSnapshot returns the last snapshot, unless it is too old.
func (p *provider) usableSnapshot() *snapshot {
	if s := p.current.Load(); s != nil && p.now().Sub(s.fetched) <= p.MaxAge {
		return s
	}
	return nil
}

// keepFresh fetches metadata and keys again and again until ctx ends.
func (p *provider) keepFresh(ctx context.Context) {
	for {
		select {
		case p.fetching <- struct{}{}:
		case <-ctx.Done():
			return
		}
		err := p.refreshKeys(ctx)
		<-p.fetching
		wait := refreshEvery
		if err != nil {
			wait = retryEvery
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// lookUpKey returns the usable snapshot and its key with an id. If there is none, it fetches,
// unless that was done a short time ago: then the error is a [*web.RetryError]. An empty id asks
// for the snapshot only.
func (p *provider) lookUpKey(ctx context.Context, id string) (*snapshot, key, error) {
	if s, k, ok := p.findKey(id); ok {
		return s, k, nil
	}

	select {
	case p.fetching <- struct{}{}:
		defer func() { <-p.fetching }()
	case <-ctx.Done():
		return nil, key{}, p.retryLater(retryEvery, ctx.Err().Error())
	}

	if s, k, ok := p.findKey(id); ok {
		return s, k, nil // another request fetched it
	}

	interval := unknownKeyEvery
	if p.usableSnapshot() == nil {
		interval = retryEvery
	}

	if elapsed := p.now().Sub(p.tried); !p.tried.IsZero() && elapsed < interval {
		return nil, key{}, p.retryLater(interval-elapsed, cmp.Or(p.failed, "they were fetched a short time ago"))
	}
	// A client that goes away must not end the fetch, because the next one has to wait.
	if err := p.refreshKeys(context.WithoutCancel(ctx)); err != nil {
		return nil, key{}, p.retryLater(interval, err.Error())
	}

	s, k, ok := p.findKey(id)
	if !ok {
		return nil, key{}, errKey
	}

	return s, k, nil
}

func (p *provider) findKey(id string) (*snapshot, key, bool) {
	s := p.usableSnapshot()
	if s == nil || id == "" {
		return s, key{}, s != nil
	}
	k, ok := s.keys[id]
	return s, k, ok
}

func (p *provider) retryLater(after time.Duration, reason string) error {
	return &web.RetryError{
		After: max(after, time.Second), Err: fmt.Errorf("the keys of the identity provider %s cannot be fetched now: %s", p.URL, visible.Clip(reason, maxReason)),
	}
}

// refreshKeys fetches metadata and keys. It logs when fetches begin to fail, when the reason
// changes, and when they succeed again.
func (p *provider) refreshKeys(ctx context.Context) error {
	begun := p.now()
	s, err := p.fetchSnapshot(ctx)
	p.tried = p.now() // the requests that waited for this fetch make no other one
	if err != nil {
		if ctx.Err() == nil && p.failed != err.Error() {
			p.failed = err.Error()
			p.log.Warn("the keys of the identity provider cannot be fetched", "error",
				visible.Clip(p.failed, maxReason))
		}
		return err
	}

	s.fetched = begun
	if previous := p.current.Swap(s); previous == nil || previous.digest != s.digest {
		p.log.Info("the identity provider has new keys", "keys", len(s.keys))
	} else if p.failed != "" {
		p.log.Info("the identity provider can be reached again")
	}
	p.failed = ""

	return nil
}

func (p *provider) fetchSnapshot(ctx context.Context) (*snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	// OpenID Connect Discovery 1.0 section 4: a slash at the end of the issuer is left out.
	doc, err := Fetch(ctx, p.client, strings.TrimSuffix(p.URL, "/")+"/.well-known/openid-configuration", maxMetadataBytes)
	if err != nil {
		return nil, err
	}

	var metadata struct {
		Endpoints `json:",inline"`
		Issuer    string `json:"issuer"`
		KeySet    string `json:"jwks_uri"`
	}

	if json.Unmarshal(doc, &metadata) != nil {
		return nil, errors.New("the metadata is not strict JSON of the expected form")
	}
	if metadata.Issuer != p.URL {
		return nil, errors.New("the metadata names another issuer than the configuration; both must be the same, character by character")
	}

	// The endpoints may be on other hosts, as Google's are. A provider on another machine cannot
	// point to this one.
	allowLocal := strings.HasPrefix(p.URL, "http:")
	for _, endpoint := range []string{metadata.KeySet, metadata.Authorization, metadata.Token,
		metadata.DeviceAuthorization} {
		if endpoint != "" && !AllowedURL(endpoint, allowLocal) {
			return nil, errors.New("the metadata has an endpoint that is no https URL")
		}
	}

	if metadata.KeySet == "" {
		return nil, errors.New("the metadata has no jwks_uri")
	}
	if doc, err = Fetch(ctx, p.client, metadata.KeySet, maxKeySetBytes); err != nil {
		return nil, err
	}

	keys, err := parseKeys(doc)
	if err != nil {
		return nil, err
	}

	return &snapshot{Endpoints: metadata.Endpoints, keys: keys, digest: sha256.Sum256(doc)}, nil
}

// Fetch returns the body of a response with the status 200, which has at most limit bytes. The client must not follow
// redirects.
func Fetch(ctx context.Context, client *http.Client, address string, limit int64) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("the URL cannot be requested")
	}
	r.Header.Set("Accept", "application/json")
	response, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: status %d", address, response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", address, err)
	}
	if int64(len(body)) > limit {
		return nil, fmt.Errorf("GET %s: more than %d bytes", address, limit)
	}
	return body, nil
}

// AllowedURL reports whether text is an absolute https URL, or an http URL on loopback if local
// allows that.
func AllowedURL(text string, local bool) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && u.User == nil &&
		(u.Scheme == "https" || local && u.Scheme == "http" && loopback.Host(u.Hostname()))
}
