package config

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"pgfsm/internal/test/check"
)

const referring = `version: 1
servers:
  docs:
    url: "https://docs.example.com/mcp"
    headers: {Authorization: "Bearer ${env:TOKEN}", X-Plain: literal-1, X-File: "${file:key.txt}"}
  files:
    command: files
    env: {LANG: C, KEY: "a ${env:SHORT}/${file:/run/key} $${env:NOT}"}
allowlist: allow.json
`

func loadReferring(t *testing.T) *Loaded {
	t.Helper()
	files := map[string]string{"conf/pgfsm.yaml": referring, "conf/allow.json": "{}"}
	l, err := Load("conf/pgfsm.yaml", openMap(files), Overrides{})
	check.NoError(t, err)
	return l
}

func lookup(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

func TestResolve(t *testing.T) {
	l := loadReferring(t)
	files := map[string]string{"conf/key.txt": "from-a-file\r\n", "/run/key": "two\nlines\n"}
	got, err := l.Resolve(lookup(map[string]string{"TOKEN": "token-1234", "SHORT": "shortest"}), openMap(files))
	check.NoError(t, err)
	want := [][]Pair{
		{{"Authorization", "Bearer token-1234"}, {"X-Plain", "literal-1"}, {"X-File", "from-a-file"}}, nil,
		nil, {{"LANG", "C"}, {"KEY", "a shortest/two\nlines ${env:NOT}"}},
	}
	ups := got.Servers
	pairs := [][]Pair{ups[0].Headers, ups[0].Env, ups[1].Headers, ups[1].Env}
	if diff := cmp.Diff(want, pairs); diff != "" {
		t.Errorf("Resolve (-want +got):\n%s", diff)
	}
	// "C" is too short to be masked; "shortest" has exactly the bytes that are needed.
	wantSecrets := []string{
		"a shortest/two\nlines ${env:NOT}", "Bearer token-1234", "from-a-file", "token-1234", "literal-1", "two\nlines", "shortest",
	}
	if diff := cmp.Diff(wantSecrets, got.Secrets); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
	if l.Servers[0].Headers[0].Value != "Bearer ${env:TOKEN}" {
		t.Error("Resolve wrote a secret into what was loaded")
	}
}

func TestResolveFaults(t *testing.T) {
	good := map[string]string{"TOKEN": "token-1234", "SHORT": "short-12"}
	goodFiles := map[string]string{"conf/key.txt": "file-key", "/run/key": "run-keys"}
	const at, atFile, atEnv = "conf/pgfsm.yaml:5:30: ", "conf/pgfsm.yaml:5:81: ", "conf/pgfsm.yaml:8:25: "
	for _, c := range []struct {
		name   string
		change func(vars, files map[string]string)
		want   string
	}{
		{"variable-not-set", func(v, _ map[string]string) { delete(v, "TOKEN") },
			at + "servers.docs.headers.Authorization needs the variable TOKEN, which is not set"},
		{"variable-one-byte-too-short", func(v, _ map[string]string) { v["TOKEN"] = strings.Repeat("x", MinMaskedBytes-1) },
			at + "servers.docs.headers.Authorization needs the variable TOKEN, which has 7 bytes; a secret has at least 8, " +
				"or it could not be masked where a server repeats it"},
		{"variable-empty", func(v, _ map[string]string) { v["TOKEN"] = "" },
			at + "servers.docs.headers.Authorization needs the variable TOKEN, which is empty"},
		{"header-with-line-end", func(v, _ map[string]string) { v["TOKEN"] = "hidden-1\r\nHost: evil" },
			at + "servers.docs.headers.Authorization holds a line end"},
		{"variable-with-nul", func(v, _ map[string]string) { v["SHORT"] = "hidden-1\x00" },
			atEnv + "servers.files.env.KEY holds a line end"},
		{"value-too-long", func(v, _ map[string]string) { v["TOKEN"] = strings.Repeat("x", MaxSecretBytes+1) },
			at + "servers.docs.headers.Authorization needs the variable TOKEN, which has 65537 bytes"},
		{"value-not-utf-8", func(v, _ map[string]string) { v["TOKEN"] = "hidden-1\xff" },
			at + "servers.docs.headers.Authorization needs the variable TOKEN, which is not UTF-8"},
		{"file-missing", func(_, f map[string]string) { delete(f, "conf/key.txt") },
			atFile + "servers.docs.headers.X-File needs the file conf/key.txt, which cannot be read: file does not exist"},
		{"file-with-only-a-line-end", func(_, f map[string]string) { f["/run/key"] = "\n" },
			atEnv + "servers.files.env.KEY needs the file /run/key, which is empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			vars, files := map[string]string{}, map[string]string{}
			for k, v := range good {
				vars[k] = v
			}
			for k, v := range goodFiles {
				files[k] = v
			}
			l := loadReferring(t)
			if _, err := l.Resolve(lookup(vars), openMap(files)); err != nil {
				t.Fatalf("Resolve before the change = %v", err)
			}
			c.change(vars, files)
			_, err := l.Resolve(lookup(vars), openMap(files))
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Fatalf("Resolve = %v, want %s…", err, c.want)
			}
			if s := err.Error(); strings.Contains(s, "hidden-1") || strings.Contains(s, "literal-1") {
				t.Errorf("the message shows a secret:\n%s", s)
			}
		})
	}
	_, err := loadReferring(t).Resolve(lookup(nil), func(string) ([]byte, error) { return nil, os.ErrPermission })
	if n := strings.Count(err.Error(), "conf/pgfsm.yaml:"); n != 4 {
		t.Errorf("Resolve named %d faults, want all 4:\n%v", n, err)
	}
}

// TestResolveOutside: headers of the collector are secrets of a run. Only a sender of web hooks needs their secrets.
func TestResolveOutside(t *testing.T) {
	a, err := txtar.ParseFile("testdata/good/outside.txtar")
	check.NoError(t, err)
	l, err := Load("pgfsm.yaml", archive(a), Overrides{})
	check.NoError(t, err)
	vars := map[string]string{"OTEL": "token-1234"}
	got, err := l.Resolve(lookup(vars), openMap(nil))
	check.NoError(t, err)
	if diff := cmp.Diff(Table[string]{{"Authorization", "Bearer token-1234"}, {"X-Key", "literal-1"}}, got.OTLP.Headers); diff != "" {
		t.Errorf("headers of the collector (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Bearer token-1234", "token-1234", "literal-1"}, got.Secrets); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
	const missing = "approvals.hooks[0].secret needs the variable HOOK_SECRET, which is not set"
	if _, err = l.ResolveHooks(lookup(vars), openMap(nil)); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("ResolveHooks() without the variable = %v, want %q", err, missing)
	}
	vars["HOOK_SECRET"] = "whsec_c2VjcmV0"
	hooks, err := l.ResolveHooks(lookup(vars), openMap(nil))
	if err != nil || hooks[0].Secret != "whsec_c2VjcmV0" || hooks[1].Secret != "literal-literal-literal-1" {
		t.Errorf("ResolveHooks() = %+v, %v, want both secrets", hooks, err)
	}
	if l.OTLP.Headers[0].Value != "Bearer ${env:OTEL}" || l.Hooks[0].Secret != "${env:HOOK_SECRET}" {
		t.Error("resolving wrote a secret into what was loaded")
	}
}

func TestResolveClientSecret(t *testing.T) {
	load := func(secret string) *Loaded {
		text := "version: 1\nservers: {crm: {url: \"https://crm.example.com/mcp\", auth: {client_credentials: " +
			"{token_url: \"https://login.example.com/token\", client_id: pgfsm, client_secret: \"" + secret + "\"}}}}\nallowlist: allow.json\n"
		l, err := Load("pgfsm.yaml", openMap(map[string]string{"pgfsm.yaml": text, "allow.json": "{}"}), Overrides{})
		check.NoError(t, err)
		return l
	}
	const at = "pgfsm.yaml:2:160: servers.crm.auth.client_credentials.client_secret "
	for _, tt := range []struct{ name, secret, value, want string }{
		{"variable-empty", "${env:CRM}", "", at + "needs the variable CRM, which is empty"},
		{"literal-one-byte-too-short", "hidden1", "", at + "has 7 bytes; a secret has at least 8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := load(tt.secret).Resolve(lookup(map[string]string{"CRM": tt.value}), openMap(nil))
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "hidden1") || len(err.(Errors)) != 1 {
				t.Errorf("Resolve = %v, want %s…", err, tt.want)
			}
		})
	}
}

// privateKeys are texts of private keys, and of what people take for one.
func privateKeys(t *testing.T) map[string]string {
	t.Helper()
	text := func(kind string, der []byte, err error) string {
		check.NoError(t, err)
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	pkcs8 := func(key any, err error) string {
		check.NoError(t, err)
		der, err := x509.MarshalPKCS8PrivateKey(key)
		return text("PRIVATE KEY", der, err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check.NoError(t, err)
	wide, err := rsa.GenerateKey(rand.Reader, 2048)
	check.NoError(t, err)
	sec1, err := x509.MarshalECPrivateKey(ec)
	out := map[string]string{"sec1": text("EC PRIVATE KEY", sec1, err)}
	spki, err := x509.MarshalPKIXPublicKey(ec.Public())
	out["public"] = text("PUBLIC KEY", spki, err)
	out["pkcs1"] = text("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(wide), nil)
	out["ec"], out["rsa"] = pkcs8(ec, nil), pkcs8(wide, nil)
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	out["ed25519"] = pkcs8(ed, err)
	narrow, err := rsa.GenerateKey(rand.Reader, 2047)
	out["rsa-2047"] = pkcs8(narrow, err)
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	out["p384"] = pkcs8(other, err)
	agree, err := ecdh.X25519().GenerateKey(rand.Reader)
	out["x25519"] = pkcs8(agree, err)
	return out
}

func TestResolvePrivateKey(t *testing.T) {
	keys := privateKeys(t)
	const hidden = "aGlkZGVuLTE="
	block := func(kind, rest string) string {
		return "-----BEGIN " + kind + "-----\n" + rest + hidden + "\n-----END " + kind + "-----\n"
	}
	const at, atAlg = "pgfsm.yaml:2:187: servers.crm.auth.client_credentials.private_key ", "pgfsm.yaml:2:211: servers.crm.auth.client_credentials.alg "
	for _, tt := range []struct{ name, key, alg, signs, want string }{
		{"ec", keys["ec"], "", "ES256", ""},
		{"ec-of-openssl", keys["sec1"], "ES256", "ES256", ""},
		{"ec-after-its-parameters", block("EC PARAMETERS", "") + keys["sec1"], "", "ES256", ""},
		{"rsa", keys["rsa"], "", "RS256", ""},
		{"rsa-with-pss", keys["rsa"], "PS256", "PS256", ""},
		{"ed25519", keys["ed25519"], "EdDSA", "EdDSA", ""},
		{"after-its-certificate", block("CERTIFICATE", "") + keys["ed25519"], "", "EdDSA", ""},
		{"text", "hidden-1", "", "", at + "is not an unencrypted private key in PEM"},
		{"empty", "", "", "", at + "needs the file crm.key, which is empty"},
		{"seven-bytes", "hidden1", "", "", at + "needs the file crm.key, which has 7 bytes"},
		{"garbage-in-pem", block("PRIVATE KEY", ""), "", "", at + "is not an unencrypted private key in PEM"},
		{"encrypted", block("ENCRYPTED PRIVATE KEY", ""), "", "", at + "is not an unencrypted private key in PEM"},
		{"public", keys["public"], "", "", at + "is not an unencrypted private key in PEM"},
		{"two-keys", keys["ec"] + keys["rsa"], "", "", at + "holds more than one private key"},
		{"rsa-one-bit-too-short", keys["rsa-2047"], "", "", at + "is an RSA key of 2047 bits; it must have at least 2048"},
		{"other-curve", keys["p384"], "", "", at + "is an EC key on P-384"},
		{"key-agreement", keys["x25519"], "", "", at + "is a private key that does not sign"},
		{"ec-with-rs256", keys["ec"], "RS256", "", atAlg + "is RS256; the private key signs with ES256"},
		{"rsa-with-es256", keys["rsa"], "ES256", "", atAlg + "is ES256; the private key signs with RS256 or PS256"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			alg := ""
			if tt.alg != "" {
				alg = ", alg: " + tt.alg
			}
			text := "version: 1\nservers: {crm: {url: \"https://crm.example.com/mcp\", auth: {client_credentials: {token_url: \"https://login.example.com/token\", " +
				"client_id: pgfsm, issuer: \"https://i.example\", private_key: \"${file:crm.key}\"" + alg + "}}}}\nallowlist: allow.json\n"
			files := map[string]string{"pgfsm.yaml": text, "allow.json": "{}", "crm.key": tt.key}
			l, err := Load("pgfsm.yaml", openMap(files), Overrides{})
			check.NoError(t, err)
			got, err := l.Resolve(lookup(nil), openMap(files))
			if tt.want != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tt.want) || len(err.(Errors)) != 1 {
					t.Fatalf("Resolve = %v, want %s…", err, tt.want)
				}
				if s := err.Error(); strings.Contains(s, "hidden") || strings.Contains(s, hidden) || strings.Contains(s, "BEGIN") {
					t.Errorf("the message shows the key:\n%s", s)
				}
				return
			}
			check.NoError(t, err)
			if c := got.Servers[0].Auth; c.Signer == nil || c.Alg != tt.signs {
				t.Errorf("Resolve = %T with %q, want a key with %s", c.Signer, c.Alg, tt.signs)
			}
			if c := l.Content.Servers[0].ClientCredentials; c.Alg != tt.alg || l.Servers[0].Auth.Signer != nil {
				t.Errorf("Resolve changed what was loaded: %+v", c)
			}
			if want := strings.TrimSuffix(strings.TrimSuffix(tt.key, "\n"), "\r"); len(got.Secrets) != 1 || got.Secrets[0] != want {
				t.Error("the key is not a secret to be masked")
			}
			if b, err := json.Marshal(got); err != nil || bytes.Contains(b, []byte(`"D":`)) {
				t.Errorf("the key is written as JSON: %v", err)
			}
		})
	}
}
