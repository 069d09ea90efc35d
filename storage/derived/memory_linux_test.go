package derived

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// TestASessionOnThisMachineHasABoundedMemory: what a process may allocate is bounded whichever way leads to it, over the
// socket and over loopback; a statement that needs more is refused, and the session goes on.
func TestASessionOnThisMachineHasABoundedMemory(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "loadstone-derived-") // not t.TempDir, which the user of Postgres cannot enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	hba := filepath.Join(dir, "hba.conf")
	if err := os.WriteFile(hba, []byte("local all all trust\nhost all all 127.0.0.0/8 trust\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// An address of its own, where the usual port is free.
	host := fmt.Sprintf("127.64.%d.%d", os.Getpid()>>8&0xff, 1+os.Getpid()&0x7f)
	server := pgtest.StartCrashable(t, map[string]string{"hba_file": hba, "listen_addresses": host})
	folder, err := pgx.ParseConfig(server.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	for what, dsn := range map[string]string{
		"the socket": fmt.Sprintf("host=%s port=%d user=loadstone dbname=postgres", folder.Host, folder.Port),
		"loopback":   fmt.Sprintf("host=%s port=%d user=loadstone dbname=postgres sslmode=disable", host, folder.Port)} {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(context.Background()) }()
		const takes = "SELECT length(repeat('x', 100000000))"
		if _, err = conn.Exec(t.Context(), takes); err != nil {
			t.Fatal(err)
		}
		boundMemory(conn.PgConn(), 64<<20)
		if _, err = conn.Exec(t.Context(), takes); err == nil {
			t.Errorf("over %s it has 100 MB", what)
		}
		if err := conn.Ping(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
