// Package nullpg is a target that does nothing: it speaks enough of the
// Postgres protocol for a driver to connect, prepare and execute, answers every
// execution with one row, and takes exactly as long as it was told. What a load
// generator measures against it is the generator itself.
//
// It is a queueing model too: with Servers set, only so many executions are in
// service at once and the others wait in order of arrival, which makes the
// drain rate Servers ÷ Latency. A freeze holds every answer back until it is over.
//
// Besides SQL, which it does not look at, it knows two simple queries: FREEZE n
// (milliseconds, from now), and STATS, which answers with its own view of the
// latencies since the last STATS, as JSON of a histogram.
package nullpg

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine/histogram"
)

// Options say how long the target takes.
type Options struct {
	// Latency of each execution; 0 answers at once.
	Latency time.Duration
	// Spread makes latencies uniform between Latency − Spread and Latency + Spread.
	Spread time.Duration
	// Servers bounds how many executions are in service at once; 0 is no bound.
	Servers int
	// Stats keeps the target's own distribution, for STATS.
	Stats bool
}

// Server is a running target.
type Server struct {
	opts   Options
	ln     net.Listener
	frozen atomic.Int64 // until then, ns since start
	began  time.Time
	slots  chan struct{}
	next   atomic.Uint64

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	wg    sync.WaitGroup
	stats *histogram.Histogram
	ended bool
}

// Listen starts a target on a TCP address ("127.0.0.1:0") or, when it begins with a
// slash, on a unix socket. Close ends it.
func Listen(ctx context.Context, address string, o Options) (*Server, error) {
	network := "tcp"
	if strings.HasPrefix(address, "/") {
		network = "unix"
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	s := &Server{opts: o, ln: ln, began: time.Now(), conns: map[net.Conn]struct{}{}, stats: histogram.New()}
	if o.Servers > 0 {
		s.slots = make(chan struct{}, o.Servers)
	}
	s.wg.Go(s.accept)
	return s, nil
}

// Addr is where the target listens.
func (s *Server) Addr() net.Addr { return s.ln.Addr() }

// DSN is a connection string for it.
func (s *Server) DSN() string {
	if addr, ok := s.ln.Addr().(*net.TCPAddr); ok {
		return fmt.Sprintf("postgres://null@%s/null?sslmode=disable", addr)
	}
	// A driver forms the socket's name from a folder and a port.
	dir, port, _ := strings.Cut(s.ln.Addr().String(), "/.s.PGSQL.")
	return fmt.Sprintf("host=%s port=%s user=null dbname=null sslmode=disable", dir, port)
}

// Freeze holds back every answer that is due from now on for d.
func (s *Server) Freeze(d time.Duration) {
	s.frozen.Store(int64(time.Since(s.began) + d))
}

// Close ends the target and its connections. A second call does nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	s.ended = true
	err := s.ln.Close()
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return err
}

func (s *Server) accept() {
	for {
		c, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.ended {
			_ = c.Close()
		} else {
			s.conns[c] = struct{}{}
			s.wg.Go(func() {
				_ = s.serve(c) // a client that leaves is the ordinary end
				_ = c.Close()
				s.mu.Lock()
				delete(s.conns, c)
				s.mu.Unlock()
			})
		}
		s.mu.Unlock()
	}
}

const (
	codeSSL    = 80877103
	codeGSS    = 80877104
	codeCancel = 80877102
	int8OID    = 20
	maxMessage = 16 << 20
	readBuffer = 4 << 10
	// int8Columns describes one column: its name, no table, the type int8 of 8 bytes, text format.
	int8Columns = "\x00\x01v\x00" + "\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x14" + "\x00\x08" + "\xff\xff\xff\xff" + "\x00\x00"
	textColumns = "\x00\x01stats\x00" + "\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x19" + "\xff\xff" + "\xff\xff\xff\xff" + "\x00\x00"
)

// session is one connection.
type session struct {
	s   *Server
	c   net.Conn
	r   *bufio.Reader
	out []byte
	// params counts the parameters of each prepared statement.
	params map[string]int
	binary bool
	// skip: an error was sent, and what follows is ignored up to Sync.
	skip bool
	ran  int
	came time.Time
	body []byte
}

// serve speaks the protocol until the client leaves.
func (s *Server) serve(c net.Conn) error {
	ss := &session{s: s, c: c, r: bufio.NewReaderSize(c, readBuffer), params: map[string]int{}}
	if err := ss.startup(); err != nil {
		return err
	}
	for {
		kind, err := ss.r.ReadByte()
		if err != nil {
			return fmt.Errorf("reading a message: %w", err)
		}
		body, err := ss.read()
		if err != nil {
			return err
		}
		if ss.ran == 0 && kind != 'S' {
			ss.came = time.Now()
		}
		if kind == 'X' {
			return nil
		}
		if err := ss.message(kind, body); err != nil {
			return err
		}
	}
}

// read reads a length and the body that follows, valid until the next read.
func (ss *session) read() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(ss.r, head[:]); err != nil {
		return nil, fmt.Errorf("reading a length: %w", err)
	}
	n := int(binary.BigEndian.Uint32(head[:])) - 4
	if n < 0 || n > maxMessage {
		return nil, fmt.Errorf("a message of %d bytes", n)
	}
	if cap(ss.body) < n {
		ss.body = make([]byte, n)
	}
	ss.body = ss.body[:n]
	if _, err := io.ReadFull(ss.r, ss.body); err != nil {
		return nil, fmt.Errorf("reading a message: %w", err)
	}
	return ss.body, nil
}

func (ss *session) startup() error {
	for {
		body, err := ss.read()
		if err != nil {
			return err
		}
		if len(body) < 4 {
			return errors.New("a startup message without a version")
		}
		switch binary.BigEndian.Uint32(body) {
		case codeSSL, codeGSS:
			if _, err := ss.c.Write([]byte{'N'}); err != nil {
				return fmt.Errorf("answering: %w", err)
			}
			continue
		case codeCancel:
			return io.EOF
		}
		ss.send('R', "\x00\x00\x00\x00")
		for _, p := range [][2]string{{"server_version", "15.0 (null target)"}, {"client_encoding", "UTF8"}, {"server_encoding", "UTF8"},
			{"DateStyle", "ISO, MDY"}, {"integer_datetimes", "on"}, {"standard_conforming_strings", "on"}, {"TimeZone", "UTC"}} {
			ss.send('S', p[0]+"\x00"+p[1]+"\x00")
		}
		ss.send('K', "\x00\x00\x00\x01\x00\x00\x00\x02")
		ss.send('Z', "I")
		return ss.flush()
	}
}

func (ss *session) message(kind byte, body []byte) error {
	if ss.skip && kind != 'S' {
		return nil
	}
	switch kind {
	case 'P':
		name, rest := cut(body)
		sql, _ := cut(rest)
		ss.params[name] = parameters(sql)
		ss.send('1', "")
	case 'D':
		if len(body) > 0 && body[0] == 'S' {
			name, _ := cut(body[1:])
			n := ss.params[name]
			text := binary.BigEndian.AppendUint16(nil, uint16(n))
			for range n {
				text = binary.BigEndian.AppendUint32(text, int8OID)
			}
			ss.send('t', string(text))
		}
		ss.send('T', int8Columns)
	case 'B':
		ss.binary = binds(body)
		ss.send('2', "")
	case 'E':
		ss.ran++
		ss.row()
		ss.send('C', "SELECT 1\x00")
	case 'C':
		ss.send('3', "")
	case 'Q':
		return ss.query(strings.TrimSpace(strings.TrimRight(string(body), "\x00; ")))
	case 'S':
		ss.skip = false
		ss.send('Z', "I")
		return ss.answer()
	case 'H':
		return ss.flush()
	default:
		ss.fail(fmt.Sprintf("message %q is not known here", kind))
		ss.skip = true
	}
	return nil
}

// binds tells whether the portal's result is wanted in binary form.
func binds(body []byte) bool {
	_, rest := cut(body)
	_, rest = cut(rest)
	short := func() int {
		if len(rest) < 2 {
			rest = nil
			return 0
		}
		n := int(binary.BigEndian.Uint16(rest))
		rest = rest[2:]
		return n
	}
	for n := short(); n > 0; n-- {
		short()
	}
	for n := short(); n > 0 && len(rest) >= 4; n-- {
		size := int32(binary.BigEndian.Uint32(rest))
		rest = rest[4:]
		if size > 0 {
			rest = rest[min(int(size), len(rest)):]
		}
	}
	return short() > 0 && short() == 1
}

func (ss *session) row() {
	if ss.binary {
		ss.send('D', "\x00\x01\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x01")
		return
	}
	ss.send('D', "\x00\x01\x00\x00\x00\x011")
}

// query answers a simple query. Text is all it can be.
func (ss *session) query(sql string) error {
	word, arg, _ := strings.Cut(sql, " ")
	ss.binary = false
	switch strings.ToUpper(word) {
	case "":
		ss.send('I', "")
	case "FREEZE":
		ms, err := strconv.Atoi(arg)
		if err != nil || ms < 0 {
			ss.fail("FREEZE takes milliseconds")
			break
		}
		ss.s.Freeze(time.Duration(ms) * time.Millisecond)
		ss.send('C', "FREEZE\x00")
	case "STATS":
		text, err := ss.s.takeStats()
		if err != nil {
			return err
		}
		ss.send('T', textColumns)
		ss.send('D', "\x00\x01"+string(binary.BigEndian.AppendUint32(nil, uint32(len(text))))+string(text))
		ss.send('C', "SELECT 1\x00")
	case "SELECT", "SHOW", "WITH", "VALUES":
		ss.ran++
		ss.send('T', int8Columns)
		ss.row()
		ss.send('C', "SELECT 1\x00")
	default:
		ss.send('C', strings.ToUpper(word)+"\x00")
	}
	ss.send('Z', "I")
	return ss.answer()
}

// answer lets the time pass that the executions take, and sends everything.
func (ss *session) answer() error {
	s := ss.s
	if ss.ran > 0 {
		if s.slots != nil {
			s.slots <- struct{}{}
		}
		for range ss.ran {
			s.pass()
		}
		if s.slots != nil {
			<-s.slots
		}
		if s.opts.Stats {
			s.mu.Lock()
			s.stats.Record(int64(time.Since(ss.came)))
			s.mu.Unlock()
		}
		ss.ran = 0
	}
	return ss.flush()
}

// Fraction is element n of a sequence that fills 0 to 1 evenly: uniform latencies
// that are the same in every run.
func Fraction(n uint64) float64 { return float64(n*0x9E3779B97F4A7C15>>11) / (1 << 53) }

// pass waits for one service time, and for the end of a freeze.
func (s *Server) pass() {
	if d := s.opts.Latency; d > 0 {
		if s.opts.Spread > 0 {
			d += time.Duration((2*Fraction(s.next.Add(1)) - 1) * float64(s.opts.Spread))
		}
		time.Sleep(d)
	}
	for {
		left := time.Duration(s.frozen.Load()) - time.Since(s.began)
		if left <= 0 {
			return
		}
		time.Sleep(left)
	}
}

func (s *Server) takeStats() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := json.Marshal(s.stats.Data())
	s.stats.Reset()
	if err != nil {
		return nil, fmt.Errorf("writing the statistics: %w", err)
	}
	return text, nil
}

func (ss *session) send(kind byte, body string) {
	ss.out = append(ss.out, kind)
	ss.out = binary.BigEndian.AppendUint32(ss.out, uint32(len(body)+4))
	ss.out = append(ss.out, body...)
}

func (ss *session) fail(text string) {
	ss.send('E', "SERROR\x00VERROR\x00C0A000\x00M"+text+"\x00\x00")
}

func (ss *session) flush() error {
	_, err := ss.c.Write(ss.out)
	ss.out = ss.out[:0]
	if err != nil {
		return fmt.Errorf("answering: %w", err)
	}
	return nil
}

// cut takes a string that ends with a zero byte.
func cut(b []byte) (string, []byte) {
	for i, c := range b {
		if c == 0 {
			return string(b[:i]), b[i+1:]
		}
	}
	return string(b), nil
}

// parameters is the highest n of $n in a text.
func parameters(sql string) int {
	most := 0
	for i := 0; i < len(sql); i++ {
		if sql[i] != '$' {
			continue
		}
		n := 0
		for i++; i < len(sql) && sql[i] >= '0' && sql[i] <= '9' && n < 1<<15; i++ {
			n = 10*n + int(sql[i]-'0')
		}
		most = max(most, n)
	}
	return most
}
