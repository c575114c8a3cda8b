//go:build unix

package pgtest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/tool"
)

// Pooler runs PgBouncer in transaction mode in front of the cluster, with few connections to it, and returns its address. PgBouncer knows
// the superuser and the roles. Without PgBouncer the test is skipped; if CI is set, it fails.
func (c *Cluster) Pooler(t testing.TB, roles ...string) string {
	t.Helper()
	bin := tool.Path(t, "pgbouncer", "pgbouncer")
	dir := t.TempDir()
	host, port, err := net.SplitHostPort(c.Address())
	check.NoError(t, err)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	check.NoError(t, err)
	address := free.Addr().(*net.TCPAddr)
	free.Close()
	users := ""
	for _, role := range append(roles, Superuser) {
		users += fmt.Sprintf("%q \"\"\n", role)
	}
	config := fmt.Sprintf("[databases]\n* = host=%s port=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\nauth_type = trust\n"+
		"auth_file = %s/users\npool_mode = transaction\ndefault_pool_size = 5\nmax_client_conn = 500\n", host, port, address.Port, dir)
	for name, text := range map[string]string{"users": users, "ini": config} { // in any order
		check.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	args := []string{"-q", filepath.Join(dir, "ini")}
	if os.Geteuid() == 0 { // PgBouncer refuses to run as root
		args = append([]string{"-u", "nobody"}, args...)
		for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
			check.NoError(t, os.Chmod(d, 0o755))
		}
	}
	cmd := exec.Command(bin, args...)
	check.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", address.String())
		if err == nil {
			conn.Close()
			return address.String()
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
