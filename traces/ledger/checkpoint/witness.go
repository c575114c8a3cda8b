package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/web/loopback"
)

const (
	// witnessTimeout bounds one request to a witness.
	witnessTimeout = 30 * time.Second
	// sizeType is the content type of an answer with the size of the last checkpoint that the
	// witness cosigned.
	sizeType = "text/x.tlog.size"
	// maxShown bounds the part of a witness's answer that an error shows, in bytes.
	maxShown = 200
)

// A Witness is a service that cosigns the checkpoints of a log as long as the log only grows.
type Witness struct {
	key    note.Verifier
	url    string
	client http.Client
}

// NewWitness returns the witness with this submission prefix and verifier key.
func NewWitness(prefix string, key note.Verifier) (*Witness, error) {
	u, err := url.Parse(prefix)
	switch {
	case err != nil:
		return nil, err
	case u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !loopback.Host(u.Hostname())):
		return nil, fmt.Errorf("the witness %q needs an https URL; http is allowed to this machine only", prefix)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("the URL of the witness at %s must end with its path", u.Host)
	}
	w := &Witness{key: key, url: u.JoinPath("add-checkpoint").String()}
	w.client = http.Client{
		Timeout: witnessTimeout,
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
			MaxResponseHeaderBytes: MaxBytes},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return w, nil
}

// Cosign submits a signed checkpoint of the log with this tree, and returns it with the cosignature
// of the witness. The error is [ErrInconsistent] if the witness has cosigned another history of the
// log.
func (w *Witness) Cosign(ctx context.Context, signed []byte, tree tlog.HashReader) ([]byte, error) {
	c, err := Read(signed)
	if err != nil {
		return nil, err
	}

	var old int64 // a witness with an earlier checkpoint answers with its size
	r, err := w.submitCheckpoint(ctx, signed, old, nil)
	if err != nil {
		return nil, err
	}

	if r.status == http.StatusConflict {
		if old, err = r.cosignedSize(); err != nil {
			return nil, fmt.Errorf("witness %s: %w", w.url, err)
		}
		if old > c.Size {
			return nil, w.explainRollback(c, old, tree)
		}
		proof, err := ProveGrowth(c.Size, old, tree)
		if err != nil {
			return nil, err
		}
		if r, err = w.submitCheckpoint(ctx, signed, old, proof); err != nil {
			return nil, err
		}
	}

	if err := w.checkResponse(r, c, old); err != nil {
		return nil, err
	}

	return w.addCosignature(signed, r.body)
}

// explainRollback returns the error of a checkpoint with fewer entries than the witness has
// cosigned.
func (w *Witness) explainRollback(c Checkpoint, old int64, tree tlog.HashReader) error {
	if _, err := tree.ReadHashes([]int64{tlog.StoredHashIndex(0, old-1)}); err == nil {
		return fmt.Errorf("witness %s: it has cosigned %d entries of the log already, and the checkpoint has %d: submit a new checkpoint", w.url, old, c.Size)
	}
	return fmt.Errorf("%w: the witness %s has cosigned %d entries and the log has fewer; the last ones were removed, or an older copy was put back",
		ErrInconsistent, w.url, old)
}

// response holds the answer of a witness.
type response struct {
	status int
	kind   string // the content type
	body   []byte
}

// submitCheckpoint sends one add-checkpoint request.
func (w *Witness) submitCheckpoint(ctx context.Context, signed []byte, old int64, proof tlog.TreeProof) (*response,
	error) {
	body := (&Consistency{old, proof, signed}).Marshal()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	answer, err := w.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("witness: %w", err)
	}
	defer answer.Body.Close()
	r := &response{status: answer.StatusCode}
	r.kind, _, _ = mime.ParseMediaType(answer.Header.Get("Content-Type")) // empty if the header is invalid
	if r.body, err = io.ReadAll(io.LimitReader(answer.Body, MaxBytes+1)); err != nil {
		return nil, fmt.Errorf("witness %s: %w", w.url, err)
	}
	if len(r.body) > MaxBytes {
		return nil, fmt.Errorf("witness %s: its answer has more than %d bytes", w.url, MaxBytes)
	}

	return r, nil
}

// cosignedSize reads the size of the last checkpoint that the witness cosigned.
func (r *response) cosignedSize() (int64, error) {
	line := strings.TrimSuffix(string(r.body), "\n")
	size, err := strconv.ParseInt(line, 10, 64)
	if err != nil || r.kind != sizeType || size < 0 || strconv.FormatInt(size, 10) != line {
		return 0, fmt.Errorf("it answered 409 without a size (%q, type %q)", r.bodyText(), r.kind)
	}
	return size, nil
}

func (r *response) bodyText() string { return string(r.body[:min(len(r.body), maxShown)]) }

// checkResponse returns the reason why the witness did not cosign a checkpoint that was submitted
// with this old size; nil if it did.
func (w *Witness) checkResponse(r *response, c Checkpoint, old int64) error {
	switch r.status {
	case http.StatusOK:
		return nil
	case http.StatusConflict:
		if size, err := r.cosignedSize(); err == nil && size != old {
			return fmt.Errorf("witness %s: it cosigned another checkpoint meanwhile: run the command again", w.url)
		}
		return fmt.Errorf("%w: the witness %s has cosigned another tree with %d entries", ErrInconsistent, w.url,
			c.Size)
	case http.StatusUnprocessableEntity:
		return fmt.Errorf("%w: the witness %s has cosigned %d entries that are not the first ones of this log",
			ErrInconsistent, w.url, old)
	case http.StatusNotFound:
		return fmt.Errorf("witness %s: it does not know the log %s: check the URL, and have the operator of the witness add the log with its "+
			"verifier keys (pgfsm ledger key list)", w.url, c.Origin)
	case http.StatusForbidden:
		return fmt.Errorf("witness %s: it trusts none of the keys that signed the checkpoint: have the operator of the witness add the verifier key of "+
			"the log %s (pgfsm ledger key list), or sign with the key that it trusts", w.url, c.Origin)
	case http.StatusBadRequest:
		return fmt.Errorf("witness %s: it rejected the request as malformed: %q; check that the URL is the submission prefix of a c2sp.org/tlog-witness",
			w.url, r.bodyText())
	}
	return fmt.Errorf("witness %s: it answered with status %d: %q; try again later", w.url, r.status, r.bodyText())
}

// addCosignature verifies the cosignature of the witness among the signature lines of its answer,
// and adds it to the checkpoint.
func (w *Witness) addCosignature(signed, lines []byte) ([]byte, error) {
	n, err := openUnverified(signed)
	if err != nil {
		return nil, err
	}

	// An earlier cosignature would hide the new one.
	n.UnverifiedSigs = slices.DeleteFunc(n.UnverifiedSigs, func(s note.Signature) bool {
		return s.Name == w.key.Name() && s.Hash == w.key.KeyHash()
	})
	base, err := note.Sign(n)
	if err != nil {
		return nil, err
	}

	verifiers := note.VerifierList(w.key)
	opened, err := note.Open(append(base, lines...), verifiers)
	if err == nil && opened.Text != n.Text {
		err = errors.New("there is more than signatures")
	}
	if err != nil {
		return nil, fmt.Errorf("witness %s: its answer has no valid cosignature of %s: %w", w.url,
			keyName(w.key.Name(), w.key.KeyHash()), err)
	}

	n.UnverifiedSigs = append(n.UnverifiedSigs, opened.Sigs...)
	return note.Sign(n)
}
