//go:build unix

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"pgfsm/browsertest"
	"pgfsm/traces/ledger"
)

// A proxy is an nginx with the configuration of docs/operate/deploy.md, in front of an admin address.
type proxy struct {
	dir     string
	address string
	cmd     *exec.Cmd
}

// newProxy configures nginx as the docs say.
func newProxy(t *testing.T, admin string) *proxy {
	t.Helper()
	if _, err := nginx(); err != nil {
		skip(t, "nginx is not installed")
	}
	_, rest, _ := strings.Cut(textOf(t, filepath.Join(repository, "docs/operate/deploy.md")), "```nginx\n")
	server, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/operate/deploy.md has no configuration of nginx")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	named := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"approvals.example.com"}, NotAfter: time.Now().Add(time.Hour)}
	public, err := x509.CreateCertificate(rand.Reader, named, named, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{dir: t.TempDir(), address: fmt.Sprintf("127.0.0.1:%d", freePort(t))}
	write(t, filepath.Join(p.dir, "approvals.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: public})))
	write(t, filepath.Join(p.dir, "approvals.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	for from, to := range map[string]string{ // in any order
		"listen 443": "listen " + p.address, "/etc/ssl": p.dir, "http://127.0.0.1:9464": admin,
	} {
		if strings.Count(server, from) == 0 {
			t.Fatalf("the configuration of the docs has no %s: %s", from, server)
		}
		server = strings.ReplaceAll(server, from, to)
	}
	user := ""
	if os.Getuid() == 0 {
		user = "user root;\n"
	}
	write(t, filepath.Join(p.dir, "nginx.conf"), user+"daemon off;\npid nginx.pid;\nevents {}\nhttp {\naccess_log off;\nclient_body_temp_path a;\n"+
		"proxy_temp_path b;\nfastcgi_temp_path c;\nuwsgi_temp_path d;\nscgi_temp_path e;\n"+server+"}\n")
	p.start(t)
	t.Cleanup(func() { p.stop(t) })
	return p
}

// nginx returns the path of nginx: in PATH, or where Debian installs it.
func nginx() (string, error) {
	if path, err := exec.LookPath("nginx"); err == nil {
		return path, nil
	}
	return exec.LookPath("/usr/sbin/nginx")
}

func (p *proxy) start(t *testing.T) {
	t.Helper()
	path, err := nginx()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(path, "-p", p.dir, "-c", filepath.Join(p.dir, "nginx.conf"), "-e", filepath.Join(p.dir, "error.log"))
	said := new(lines)
	p.cmd.Stdout, p.cmd.Stderr = said, said
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	soon(t, "nginx listens", func() bool {
		c, err := net.Dial("tcp", p.address)
		if err != nil {
			return false
		}
		c.Close()
		return true
	})
}

// stop ends nginx and all its connections.
func (p *proxy) stop(t *testing.T) {
	t.Helper()
	if p.cmd.ProcessState != nil {
		return
	}
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	p.cmd.Wait() // the error only says that a signal ended it
}

// A window is a browser with one page.
type window struct {
	*testing.T
	ctx context.Context
}

// until waits until the page and its script are loaded, and the page's content has a text or, if has is false, does not have it.
func (b *window) until(has bool, text string) {
	b.Helper()
	soon(b.T, fmt.Sprintf("the page has %q: %t", text, has), func() bool {
		is, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](
			fmt.Sprintf("document.readyState === 'complete' && document.querySelector('main').innerHTML.includes(%q) === %t", text, has)))
		return err == nil && is
	})
}

func (b *window) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.Fatal(err)
	}
}

// mostDelay is far more than an update may take. The test prints what it took.
const mostDelay = 10 * time.Second

// TestConsoleUpdates: an open page shows what changes soon after the commit, and what changed while the service, or the proxy before it, was
// gone.
func TestConsoleUpdates(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"direct", "behind-nginx"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, holdLook, "serve: {hosts: [approvals.example.com]}\n")
			at, lose := o.admin, func(change func()) { change() }
			var flags []chromedp.ExecAllocatorOption
			if name == "behind-nginx" {
				p := newProxy(t, o.admin)
				at = "https://approvals.example.com"
				flags = append(flags, chromedp.Flag("host-resolver-rules", "MAP approvals.example.com:443 "+p.address), chromedp.Flag("ignore-certificate-errors", true))
				lose = func(change func()) {
					p.stop(t)
					change()
					p.start(t)
				}
			}
			link := command(t.Context(), map[string]string{tokenVariable: o.bob}, "console", "-c", o.config, "--url", at)
			link.want(t, exitYes)
			ctx, complaints := browsertest.Start(t, func(e *network.EventRequestWillBeSent) bool { return strings.HasPrefix(e.Request.URL, at) }, flags...)
			b := &window{t, ctx}
			b.do(chromedp.Navigate(strings.TrimSpace(link.stdout)), chromedp.Click(chromedp.Search("main button")))
			b.until(true, "No call is held")
			a := o.agent("/mcp", o.ci)
			var runs []string
			var most time.Duration
			for n := range 5 {
				asked := time.Now() // before the commit
				runs = append(runs, o.held(t, a, fmt.Sprintf(`{"n":%d}`, n)))
				b.until(true, "call-"+runs[n])
				most = max(most, time.Since(asked))
			}
			t.Logf("from the request of a held call to the change of the page: at most %v", most)
			if most > mostDelay {
				t.Errorf("a page changes %v after a commit", most)
			}
			lose(func() { o.decide(t, "deny", runs[0], o.bob) })
			b.until(false, "call-"+runs[0])
			b.do(chromedp.Click(chromedp.Search("#call-" + runs[1])))
			b.until(true, `value="deny"`)
			o.stop(t, exitYes)
			digest := command(t.Context(), nil, "ledger", "show", runs[1], "-c", o.config, "--json").member("/request/binding")
			command(t.Context(), map[string]string{tokenVariable: o.bob}, "approvals", "deny", runs[1], "-c", o.config, "--digest", strings.Trim(digest, `"`),
				"--reason", "while nobody served").want(t, exitYes)
			o.served = serve(t, o.dir, "--admin", strings.TrimPrefix(o.admin, "http://"))
			b.until(true, "while nobody served")
			b.until(false, `value="deny"`)
			b.do(chromedp.Click(chromedp.Search("nav a")))
			b.until(true, "call-"+runs[2])
			last := o.held(t, o.agent("/mcp", o.ci), `{"n":9}`)
			b.until(true, "call-"+last)
			if all := complaints.Take(); len(all) > 0 {
				t.Errorf("the browser says: %s", strings.Join(all, "\n"))
			}
			for _, q := range recorded(t, o.dir) {
				if q.RunID == runs[1] && q.Status != ledger.Denied {
					t.Errorf("the call is %s", q.Status)
				}
			}
		})
	}
}
