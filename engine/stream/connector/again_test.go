package connector

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
)

// read reads until so many rows have come, or the error, for some seconds at most.
func read(t *testing.T, s Source, n int) (texts []string, err error) {
	t.Helper()
	b := &column.Batch{}
	for begin := time.Now(); len(texts) < n; {
		if err := s.Read(b); err != nil {
			return texts, err
		}
		for i := range b.N {
			texts = append(texts, string(b.Cols[1].Text(i)))
		}
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("%q came, and nothing more", texts)
		}
	}
	return texts, nil
}

// TestAPeerIsConnectedToAgain: after the end of a connection, after a reset within a row, and after a while in which
// nobody listens; each connection has its header, and what is waited for is told meanwhile.
func TestAPeerIsConnectedToAgain(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	serve := func(l net.Listener, do ...func(net.Conn)) {
		for _, one := range do {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "id,t\n")
			one(c)
			_ = c.Close()
		}
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		serve(l, func(c net.Conn) { _, _ = io.WriteString(c, "1,a\n2,b") }, func(c net.Conn) {
			_, _ = io.WriteString(c, "3,c\n4,")
			time.Sleep(100 * time.Millisecond)
			_ = c.(*net.TCPConn).SetLinger(0)
		})
		_ = l.Close()
	}()
	config := csv("")
	config["SOURCE.SOCKET_HOST"], config["SOURCE.SOCKET_PORT"] = "127.0.0.1", int64(l.Addr().(*net.TCPAddr).Port)
	config["SOURCE.RECONNECT"], config["PARSER.HEADER"] = true, true
	s, err := Open(t.Context(), TCP, config, two, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := read(t, s, 3); err != nil || strings.Join(got, "") != "abc" {
		t.Fatalf("%q, %v", got, err)
	}
	<-gone
	b := &column.Batch{}
	for begin := time.Now(); !strings.Contains(s.(Waiting).Waiting(), "connecting to "+address); {
		if err := s.Read(b); err != nil || b.N > 0 || time.Since(begin) > 10*time.Second {
			t.Fatalf("it waits for %q, %d rows, %v", s.(Waiting).Waiting(), b.N, err)
		}
	}
	l2, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Skip("another program listens there: ", err)
	}
	defer func() { _ = l2.Close() }()
	go serve(l2, func(c net.Conn) { _, _ = io.WriteString(c, "5,e\n") }, func(net.Conn) { time.Sleep(time.Minute) })
	if got, err := read(t, s, 1); err != nil || got[0] != "e" || s.Malformed() != 1 {
		t.Errorf("%q, %d malformed, %v", got, s.Malformed(), err)
	}
	ended := make(chan error)
	go func() { _, err := read(t, s, 1); ended <- err }()
	time.Sleep(20 * time.Millisecond)
	began := time.Now()
	if err := s.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if err := <-ended; err == nil || time.Since(began) > 2*time.Second {
		t.Errorf("after Close it read on for %v: %v", time.Since(began), err)
	}
}

// TestAFileIsFollowed: lines come as they are whole, and none is lost that was written before the file became another
// one, which is told.
func TestAFileIsFollowed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then func(path string) error
		want string
	}{
		"truncated": {func(path string) error { return os.Truncate(path, 3) }, "was truncated while it was followed: it has 3 bytes"},
		"replaced": {func(path string) error {
			return errors.Join(os.Rename(path, path+".1"), os.WriteFile(path, []byte("9,z\n"), 0o600))
		}, "another file was put in the place of \"a.csv\""},
		"renamed": {func(path string) error { return os.Rename(path, path+".1") }, "was removed, or renamed"},
		"removed": {os.Remove, "was removed, or renamed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "a.csv")
			folder, err := OpenFolder(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = folder.Close() }()
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			write := func(text string) {
				t.Helper()
				if _, err := f.WriteString(text); err != nil {
					t.Fatal(err)
				}
			}
			config := csv("a.csv")
			config["SOURCE.FOLLOW"] = true
			write("1,a\n2,b")
			s, err := Open(t.Context(), File, config, two, folder, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			if got, err := read(t, s, 1); err != nil || got[0] != "a" {
				t.Fatalf("%q, %v", got, err)
			}
			write("b\n3,c\n")
			if got, err := read(t, s, 2); err != nil || strings.Join(got, " ") != "bb c" {
				t.Fatalf("%q, %v", got, err)
			}
			if name == "replaced" || name == "renamed" {
				write("4,d\n")
			}
			if err := c.then(path); err != nil {
				t.Fatal(err)
			}
			got, err := read(t, s, 9)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "DROP the query") {
				t.Errorf("%v", err)
			}
			if (name == "replaced" || name == "renamed") != (strings.Join(got, "") == "d") {
				t.Errorf("%q came before", got)
			}
		})
	}
}
