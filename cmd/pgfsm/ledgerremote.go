package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/note"

	"pgfsm/internal/cli"
	"pgfsm/internal/safefile"
	"pgfsm/internal/visible"
	"pgfsm/internal/web/loopback"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
)

const (
	// treeHeadTime bounds a request for the state of the log.
	treeHeadTime = 30 * time.Second
	// maxTreeHead bounds the answer in bytes: a proof has at most two hashes for each bit of the size.
	maxTreeHead = 64 << 10
)

// writeRemoteCheckpoint signs the state of a log that a service tells, with keys that the service does not
// have. If the file has a checkpoint, the log must contain its entries. So the owner of the key never signs
// two histories.
func (f *ledgerFlags) writeRemoteCheckpoint(ctx context.Context, address string, keys []string, file string) error {
	if len(keys) == 0 || file == "" {
		return errors.New("--url needs --key, the file with your private key, and --output: the file keeps what you signed last, and the next checkpoint must contain it")
	}
	var signers []note.Signer
	for _, path := range keys {
		signer, err := checkpoint.ReadSigner(path)
		if err != nil {
			return err
		}
		signers = append(signers, signer)
	}

	previous, _, err := safefile.Read(file)
	var last checkpoint.Checkpoint
	switch {
	case errors.Is(err, fs.ErrNotExist):
		last.Origin = signers[0].Name()
	case err != nil:
		return err
	default:
		if last, err = checkpoint.Read(previous); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}

	head, err := f.w.requestTreeHead(ctx, address, last.Size)
	if err != nil {
		return err
	}
	c := checkpoint.Checkpoint{Origin: head.Origin, Size: head.Size, Root: head.Root}
	if err := checkpoint.CheckGrowth(last, c, head.Hashes); err != nil {
		return f.orInconsistent(err)
	}
	signed := previous
	if c != last { // the same checkpoint may have cosignatures
		if signed, err = checkpoint.Sign(c, signers...); err != nil {
			return err
		}
		if err := safefile.Replace(file, previous, signed, publicMode); err != nil {
			return err
		}
	}
	return f.printDocument(cli.Document("origin", c.Origin, "size", c.Size, "root", c.Root, "checkpoint", string(signed)), linePrinter(""))
}

// requestTreeHead asks a service for the state of its log, with the proof of its first entries.
func (w world) requestTreeHead(ctx context.Context, address string, from int64) (head ledger.TreeHead, err error) {
	ctx, cancel := context.WithTimeout(ctx, treeHeadTime)
	defer cancel()
	body, answer, err := w.askGateway(ctx, http.MethodGet, fmt.Sprintf("%s/tree-head?from=%d", address, from), maxTreeHead)
	switch {
	case err != nil:
		return head, err
	case answer.StatusCode == http.StatusBadRequest && from > 0:
		return head, fmt.Errorf("%w: the service says that its log has fewer than the %d entries of your last checkpoint, or does not know the question",
			checkpoint.ErrInconsistent, from)
	case answer.StatusCode != http.StatusOK:
		return head, fmt.Errorf("the service answered %s: %s", visible.Text(answer.Status), visible.Clip(string(body), maxTold))
	}
	if err := json.Unmarshal(body, &head); err != nil || head.From != from {
		return head, errors.New("the service's answer cannot be read")
	}
	return head, nil
}

// askGateway sends a request with the token of the environment, and returns the answer with its body.
func (w world) askGateway(ctx context.Context, method, url string, limit int64) (body []byte, answer *http.Response, err error) {
	token := w.env(tokenVariable)
	if token == "" {
		return nil, nil, fmt.Errorf("%s is not set, so the gateway cannot identify you; pgfsm token create --name NAME creates a token", tokenVariable)
	}
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, nil, err
	}
	if request.URL.Scheme == "http" && !loopback.Host(request.URL.Hostname()) {
		return nil, nil, fmt.Errorf("%s: others could read the token on its way: use https", request.URL.Host)
	}

	// No redirect is followed: the token is for this gateway only.
	request.Header.Set("Authorization", "Bearer "+token)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if answer, err = client.Do(request); err != nil {
		return nil, nil, fmt.Errorf("the gateway cannot be asked: %w", err)
	}
	defer answer.Body.Close()
	if body, err = io.ReadAll(io.LimitReader(answer.Body, limit)); err != nil {
		return nil, nil, fmt.Errorf("the gateway's answer cannot be read: %w", err)
	}
	return body, answer, nil
}

func newVerifyConsistency(w world) *cobra.Command {
	return newVerifyCommand(w, "verify-consistency OLD PROOF", verifyConsistency)
}

func verifyConsistency(w world, oldPath, proofPath string, f *keyFlags, keys checkpoint.Keys, asJSON bool) error {
	old, _, err := safefile.Read(oldPath)
	if err != nil {
		return err
	}
	text, _, err := safefile.Read(proofPath)
	if err != nil {
		return err
	}

	proof, err := checkpoint.ParseConsistency(text)
	var earlier, later *checkpoint.Opened
	if err == nil {
		earlier, later, err = proof.Verify(old, keys)
	}
	if err == nil {
		err = f.checkAge(later)
	}
	if err != nil {
		return tellUnproven(w, codeProofInvalid, err, asJSON)
	}
	return w.printDocument(asJSON, cli.Document("ok", true, "origin", later.Origin, "old_size", earlier.Size, "size", later.Size,
		"root", later.Root.String(), "signed_by", later.Signed, "cosigned_by", later.Cosigned), cli.ExitYes,
		templatePrinter("consistent", struct {
			*checkpoint.Opened
			Old int64
		}{later, earlier.Size}))
}
