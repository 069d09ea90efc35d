package connector

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
)

var two = []column.Column{{Name: "id", Type: column.Int64Type}, {Name: "t", Type: column.TextType}}

func csv(path string) Config {
	return Config{"SOURCE.FILE_PATH": path, "PARSER.TYPE": "CSV", "PARSER.TUPLE_DELIMITER": "\n",
		"PARSER.FIELD_DELIMITER": ",", "SOURCE.BATCH_ROWS": int64(100)}
}

// TestFilesOutsideAreNotOpened, nor links, devices, pipes and folders inside.
func TestFilesOutsideAreNotOpened(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inside := filepath.Join(dir, "inside")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(inside, "sub"), 0o700))
	must(os.WriteFile(filepath.Join(dir, "secret.csv"), []byte("1,a\n"), 0o600))
	must(os.WriteFile(filepath.Join(inside, "sub", "good.csv"), []byte("1,a\n"), 0o600))
	must(os.Symlink(filepath.Join(dir, "secret.csv"), filepath.Join(inside, "link.csv")))
	must(os.Symlink("sub/good.csv", filepath.Join(inside, "near.csv")))
	must(os.Symlink(dir, filepath.Join(inside, "up")))
	must(os.Symlink("sub", filepath.Join(inside, "alias")))
	must(syscall.Mkfifo(filepath.Join(inside, "pipe.csv"), 0o600))
	refused := []string{}
	// Who is not root makes no devices: of zeros without end, and of what waits for a reader's terminal.
	for name, device := range map[string]int{"zero.csv": 1<<8 | 5, "null.csv": 1<<8 | 3, "tty.csv": 5 << 8} {
		switch err := syscall.Mknod(filepath.Join(inside, name), syscall.S_IFCHR|0o600, device); {
		case errors.Is(err, syscall.EPERM):
			t.Logf("%s: %v", name, err)
		default:
			must(err)
			refused = append(refused, name)
		}
	}
	socket, err := net.Listen("unix", filepath.Join(inside, "socket.csv"))
	must(err)
	defer func() { _ = socket.Close() }()
	folder, err := OpenFolder(inside)
	must(err)
	defer func() { _ = folder.Close() }()
	for _, path := range append(refused, "socket.csv", "../secret.csv", "sub/../../secret.csv",
		filepath.Join(dir, "secret.csv"), "link.csv", "near.csv",
		"up/secret.csv", "alias/good.csv", "pipe.csv", "sub", ".", "nothing.csv", "sub/good.csv/x", "a\x00b", `..\secret.csv`, "/dev/zero") {
		if _, err := Open(t.Context(), File, csv(path), two, folder, nil); !errors.Is(err, ErrPath) {
			t.Errorf("%s was read: %v", path, err)
		}
		if path == "nothing.csv" {
			continue
		}
		sink := Config{"SINK.FILE_PATH": path, "SINK.INPUT_FORMAT": "CSV"}
		if _, err := OpenSink(File, sink, two, folder, io.Discard); !errors.Is(err, ErrPath) {
			t.Errorf("%s was written: %v", path, err)
		}
	}
	s, err := Open(t.Context(), File, csv("sub/./good.csv"), two, folder, nil)
	must(err)
	defer func() { _ = s.Close() }()
	b := &column.Batch{}
	if err := s.Read(b); err != nil || b.N != 1 {
		t.Errorf("%d rows, %v", b.N, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "secret.csv")); err != nil || string(text) != "1,a\n" {
		t.Errorf("the file outside is %q, %v", text, err)
	}
}

// peer is a server that does with its one connection what it is told to.
func peer(t *testing.T, do func(net.Conn)) Config {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		do(c)
	}()
	c := csv("")
	c["SOURCE.SOCKET_HOST"], c["SOURCE.SOCKET_PORT"] = "127.0.0.1", int64(l.Addr().(*net.TCPAddr).Port)
	return c
}

// drain reads until the end, for some seconds at most, and returns the rows and what the end was.
func drain(t *testing.T, s Source) (rows int, err error) {
	t.Helper()
	defer func() { _ = s.Close() }()
	b := &column.Batch{}
	for begin := time.Now(); time.Since(begin) < 20*time.Second; {
		if err := s.Read(b); err != nil {
			return rows, err
		}
		rows += b.N
	}
	return rows, errors.New("there was no end")
}

// TestPeersThatBehaveBadly: one that sends no line, one that sends a byte at a time, one that resets.
func TestPeersThatBehaveBadly(t *testing.T) {
	for _, c := range []struct {
		name      string
		do        func(net.Conn)
		rows      int
		malformed int64
		end       error
	}{
		{"no newline", func(c net.Conn) {
			chunk := []byte(strings.Repeat("x", 1<<16))
			for range 320 { // 20 MB
				if _, err := c.Write(chunk); err != nil {
					return
				}
			}
			_, _ = io.WriteString(c, "\n1,a\n")
		}, 1, 1, io.EOF},
		{"a byte at a time", func(c net.Conn) {
			for _, b := range []byte("1,a\n2,b\n3") {
				_, _ = c.Write([]byte{b})
				time.Sleep(30 * time.Millisecond)
			}
			_, _ = io.WriteString(c, ",c")
		}, 3, 0, io.EOF},
		{"reset", func(c net.Conn) {
			_, _ = io.WriteString(c, "1,a\n2,")
			time.Sleep(300 * time.Millisecond)
			_ = c.(*net.TCPConn).SetLinger(0)
		}, 1, 1, syscall.ECONNRESET},
		{"quiet, then nothing", func(net.Conn) { time.Sleep(300 * time.Millisecond) }, 0, 0, io.EOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := Open(t.Context(), TCP, peer(t, c.do), two, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			rows, err := drain(t, s)
			if rows != c.rows || s.Malformed() != c.malformed || !errors.Is(err, c.end) {
				t.Errorf("%d rows, %d left out, %v", rows, s.Malformed(), err)
			}
			if n := cap(s.(*socket).buffer); n > 2*maxLine {
				t.Errorf("a line took %d bytes", n)
			}
		})
	}
}

// TestAQuietPeerHoldsNoRowsBack: what came is passed on though the batch is not full.
func TestAQuietPeerHoldsNoRowsBack(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	defer close(stop)
	s, err := Open(t.Context(), TCP, peer(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "1,a\n")
		<-stop
	}), two, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	b := &column.Batch{}
	for begin := time.Now(); b.N == 0; {
		if err := s.Read(b); err != nil || time.Since(begin) > 10*time.Second {
			t.Fatalf("%d rows, %v", b.N, err)
		}
	}
	if string(b.Cols[1].Text(0)) != "a" {
		t.Errorf("%q", b.Cols[1].Text(0))
	}
}

// TestASlowStreamIsPassedOn: rows that come one by one, each sooner than a peer is called quiet, do not wait for a full
// batch.
func TestASlowStreamIsPassedOn(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	s, err := Open(t.Context(), TCP, peer(t, func(c net.Conn) {
		for {
			select {
			case <-stop:
				return
			case <-time.After(idleTimeout / 5):
				_, _ = io.WriteString(c, "1,a\n")
			}
		}
	}), two, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	defer close(stop)
	b := &column.Batch{}
	for begin := time.Now(); b.N == 0; {
		if err := s.Read(b); err != nil || time.Since(begin) > 10*time.Second {
			t.Fatalf("%d rows, %v", b.N, err)
		}
	}
	if b.N > 50 { // of the 100 that a batch has
		t.Errorf("%d rows were kept until they were passed on", b.N)
	}
}

// TestEmptyLines are NULL where a row of CSV has one column that may be; elsewhere they are no rows.
func TestEmptyLines(t *testing.T) {
	t.Parallel()
	must := column.Column{Name: "n", Type: column.Int64Type, NotNull: true}
	for _, c := range []struct {
		columns []column.Column
		parser  string
		text    string
		rows    int
	}{
		{two[:1], "CSV", "1\n\n2\r\n\r\n", 4}, {two, "CSV", "1,a\n\n2,b\n", 2},
		{[]column.Column{must}, "CSV", "1\n\n2\n", 2},
		{two[:1], "JSON", "{\"id\": 1}\n\n", 1},
	} {
		config := csv("")
		config["PARSER.TYPE"] = c.parser
		s := newRows(strings.NewReader(c.text), c.columns, config)
		b := &column.Batch{}
		if err := s.Read(b); err != nil || b.N != c.rows || s.Malformed() > 0 {
			t.Errorf("%q has %d rows, %d malformed, %v", c.text, b.N, s.Malformed(), err)
		}
		if c.rows == 4 && (!b.Cols[0].Null[1] || !b.Cols[0].Null[3] || b.Cols[0].Null[2]) {
			t.Errorf("%v", b.Cols[0].Null)
		}
	}
}

// FuzzRows: whatever a file holds, batches are whole, and memory bounded.
func FuzzRows(f *testing.F) {
	f.Add([]byte("1,a\n2,\"b\"\"c\"\n"), false)
	f.Add([]byte("{\"id\": 1, \"t\": \"\\u00e4\"}\n{}"), true)
	d := column.Type{Kind: column.Decimal, Precision: 6, Scale: 2}
	columns := append(append([]column.Column(nil), two...), column.Column{Name: "d", NotNull: true, Type: d},
		column.Column{Name: "at", Type: column.TimestampType})
	f.Fuzz(func(t *testing.T, data []byte, json bool) {
		c := csv("")
		if json {
			c["PARSER.TYPE"] = "JSON"
		}
		s := newRows(strings.NewReader(string(data)), columns, c)
		b := &column.Batch{}
		for {
			if err := s.Read(b); err != nil {
				return
			}
			for i := range b.Cols {
				if b.Cols[i].Len() != b.N || columns[i].NotNull && b.N > 0 && b.Cols[i].Null[0] {
					t.Fatalf("column %d has %d of %d values", i, b.Cols[i].Len(), b.N)
				}
			}
		}
	})
}

// TestALineWithoutEndIsToldOf: a row that is too long counts as soon as it is, not when it ends, which it may never.
func TestALineWithoutEndIsToldOf(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	s, err := Open(t.Context(), TCP, peer(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "1,a\n"+strings.Repeat("x", 3<<20))
		<-ended
		_, _ = io.WriteString(c, "\n2,b\n"+strings.Repeat("y", 2<<20))
	}), two, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan int, 1)
	go func() { rows, _ := drain(t, s); read <- rows }()
	for begin := time.Now(); s.Malformed() == 0 && time.Since(begin) < 10*time.Second; {
		time.Sleep(10 * time.Millisecond)
	}
	if n := s.Malformed(); n != 1 {
		t.Errorf("%d rows are left out", n)
	}
	close(ended)
	if rows := <-read; rows != 2 || s.Malformed() != 2 {
		t.Errorf("%d rows, %d left out", rows, s.Malformed())
	}
}

// TestLongTextsStayWhatTheyAre: rows of a megabyte each are no NULLs, however many a batch may have, and a batch of
// them does not fill the memory.
func TestLongTextsStayWhatTheyAre(t *testing.T) {
	t.Parallel()
	config := csv("")
	config["SOURCE.BATCH_ROWS"] = int64(65536)
	line := "1," + strings.Repeat("x", 1_000_000) + "\n"
	const n = 300
	var text []io.Reader
	for range n {
		text = append(text, strings.NewReader(line))
	}
	s := newRows(io.MultiReader(text...), two, config)
	b, rows := &column.Batch{}, 0
	for {
		if err := s.Read(b); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for i := range b.N {
			if b.Cols[1].Null[i] {
				t.Fatalf("row %d is NULL", rows+i)
			}
		}
		if rows += b.N; b.Cols[1].Size() > 4*fullBatch {
			t.Fatalf("a batch holds %d bytes", b.Cols[1].Size())
		}
	}
	if rows != n || s.Malformed() != 0 {
		t.Errorf("%d rows, %d malformed", rows, s.Malformed())
	}
}

// TestMembersThatDifferInCase: a row has the same values each time, and those of the exact name where it has that.
func TestMembersThatDifferInCase(t *testing.T) {
	t.Parallel()
	config := csv("")
	config["PARSER.TYPE"] = "JSON"
	for range 50 {
		s := newRows(strings.NewReader(`{"Id": 3, "ID": 2, "iD": 4, "T": "a", "t": "b"}`), two, config)
		b := &column.Batch{}
		if err := s.Read(b); err != nil || b.N != 1 {
			t.Fatalf("%d rows, %v", b.N, err)
		}
		if id, text := b.Cols[0].Ints[0], string(b.Cols[1].Text(0)); id != 2 || text != "b" {
			t.Fatalf("%d, %s", id, text)
		}
	}
}

// TestQueriesThatShareAFile: several queries write one file, each row stands whole, none is lost, and the names of
// columns stand there once; who begins when all others have ended empties it.
func TestQueriesThatShareAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = folder.Close() }()
	open := func(path string) Sink {
		s, err := OpenSink(File, Config{"SINK.FILE_PATH": path, "SINK.INPUT_FORMAT": "CSV"}, two, folder, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	const writers, batches, size = 4, 20, 50
	rows := func(id int) *column.Batch {
		b := &column.Batch{}
		b.Reset(two)
		for range size {
			b.Cols[0].AppendInt(int64(id))
			b.Cols[1].AppendText([]byte(strings.Repeat("x", 5000))) // more than what is written at once
			b.N++
		}
		return b
	}
	var group sync.WaitGroup
	for id := range writers {
		s := open([]string{"out.csv", "./out.csv"}[id%2])
		if err := s.Write(rows(id)); err != nil { // before others come
			t.Fatal(err)
		}
		group.Go(func() {
			for range batches - 1 {
				if err := s.Write(rows(id)); err != nil {
					t.Error(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	text, err := os.ReadFile(filepath.Join(dir, "out.csv"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if lines[0] != "id,t" || len(lines) != 1+writers*batches*size {
		t.Errorf("%d lines, the first %.20q", len(lines), lines[0])
	}
	for i, l := range lines[1:] {
		if len(l) != 5002 || strings.Trim(l[2:], "x") != "" {
			t.Fatalf("line %d: %.40q, %d bytes", i, l, len(l))
		}
	}
	if err := open("out.csv").Close(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "out.csv")); err != nil || string(text) != "id,t\n" {
		t.Errorf("it holds %d bytes, %v", len(text), err)
	}
	if len(folder.written) > 0 {
		t.Errorf("%d files are still written", len(folder.written))
	}
}
