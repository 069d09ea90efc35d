package dsn

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/loadstone-db/loadstone/engine/base/egress"
)

// TestSocketsAreSet reads the options of a socket back, as a server's reader and as one's own dial it.
func TestSocketsAreSet(t *testing.T) {
	cleanEnvironment(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	policy, err := egress.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]Reader{"one's own": {}, "a server's": {Strict: true, Egress: policy}} {
		for _, c := range []struct {
			text                               string
			on, idle, interval, count, timeout int
		}{
			{"keepalives_idle=61 keepalives_interval=11 keepalives_count=4 tcp_user_timeout=9000", 1, 61, 11, 4, 9000},
			{"keepalives=1 keepalives_idle=62", 1, 62, 0, 0, 0}, {"keepalives=0", 0, 0, 0, 0, 0},
			{"keepalives=0 keepalives_idle=61", 0, 0, 0, 0, 0}, {"tcp_user_timeout=1500", 1, 0, 0, 0, 1500},
		} {
			config, err := r.Config("host=127.0.0.1 user=u " + c.text)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := config.DialFunc(t.Context(), "tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			raw, err := conn.(*net.TCPConn).SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			_ = raw.Control(func(fd uintptr) {
				for _, o := range []struct{ level, name, want int }{{unix.SOL_SOCKET, unix.SO_KEEPALIVE, c.on},
					{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, c.idle}, {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, c.interval},
					{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, c.count}, {unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, c.timeout}} {
					got, err := unix.GetsockoptInt(int(fd), o.level, o.name)
					if err != nil || got != o.want && (o.want > 0 || o.name == unix.SO_KEEPALIVE) {
						t.Errorf("%s: %s: option %d is %d, want %d, %v", name, c.text, o.name, got, o.want, err)
					}
				}
			})
			_ = conn.Close()
		}
	}
}
