package nullpg

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

const (
	codeSSL    = 80877103
	codeGSS    = 80877104
	codeCancel = 80877102
	int8OID    = 20
	maxMessage = 16 << 20
	readBuffer = 4 << 10
	// int8Columns describes one column: its name, no table, the type int8 of 8 bytes, text format.
	int8Columns = "\x00\x01v\x00" + "\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x14" + "\x00\x08" + "\xff\xff\xff\xff" +
		"\x00\x00"
	textColumns = "\x00\x01stats\x00" + "\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x19" + "\xff\xff" + "\xff\xff\xff\xff" +
		"\x00\x00"
)

// session is the server's side of one connection. It is fed what arrives, in
// pieces of any size.
type session struct {
	s   *Server
	to  io.Writer
	out []byte
	// in is the beginning of a message of which more is to come.
	in      []byte
	started bool
	binary  bool
	// skip: an error was sent, and what follows is ignored up to Sync.
	inside bool // of a transaction
	skip   bool
	ran    int
	came   time.Time
	// params counts the parameters of each prepared statement.
	params map[string]int
}

// feed takes bytes of the stream and answers the messages that are whole. An
// error ends the connection; io.EOF says that the client wanted it.
func (ss *session) feed(p []byte) error {
	if len(ss.in) > 0 {
		ss.in = append(ss.in, p...)
		p = ss.in
	}
	for {
		n, err := ss.first(p)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		p = p[n:]
	}
	if len(p) > 0 || len(ss.in) > 0 {
		ss.in = append(ss.in[:0], p...)
	}
	return nil
}

// first answers the first message in p and returns its length, 0 when it is not whole.
func (ss *session) first(p []byte) (int, error) {
	kind := 0 // bytes; a startup message has none
	if ss.started {
		kind = 1
	}
	if len(p) < kind+4 {
		return 0, nil
	}
	size := int(binary.BigEndian.Uint32(p[kind:]))
	if size < 4 || size > maxMessage {
		return 0, fmt.Errorf("a message of %d bytes", size)
	}
	if len(p) < kind+size {
		return 0, nil
	}
	body := p[kind+4 : kind+size]
	if !ss.started {
		return size, ss.startup(body)
	}
	if p[0] == 'X' {
		return 0, io.EOF
	}
	if ss.s.opts.Stats && ss.ran == 0 && p[0] != 'S' {
		ss.came = time.Now()
	}
	return kind + size, ss.message(p[0], body)
}

func (ss *session) startup(body []byte) error {
	if len(body) < 4 {
		return errors.New("a startup message without a version")
	}
	switch binary.BigEndian.Uint32(body) {
	case codeSSL, codeGSS:
		if _, err := ss.to.Write([]byte{'N'}); err != nil {
			return fmt.Errorf("answering: %w", err)
		}
		return nil
	case codeCancel:
		return io.EOF
	}
	ss.started = true
	ss.send('R', "\x00\x00\x00\x00")
	for _, p := range [][2]string{{"server_version", "15.0 (null target)"}, {"client_encoding", "UTF8"},
		{"server_encoding", "UTF8"},
		{"DateStyle", "ISO, MDY"}, {"integer_datetimes", "on"}, {"standard_conforming_strings", "on"}, {"TimeZone", "UTC"}} {
		ss.send('S', p[0]+"\x00"+p[1]+"\x00")
	}
	ss.send('K', "\x00\x00\x00\x01\x00\x00\x00\x02")
	ss.send('Z', "I")
	return ss.flush()
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
		ss.send('Z', ss.state())
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
	case "BEGIN":
		ss.inside = true
		ss.send('C', "BEGIN\x00")
	case "COMMIT", "ROLLBACK":
		ss.inside = false
		ss.send('C', strings.ToUpper(word)+"\x00")
	default:
		ss.send('C', strings.ToUpper(word)+"\x00")
	}
	ss.send('Z', ss.state())
	return ss.answer()
}

// state is where the session stands: idle, or inside of a transaction.
func (ss *session) state() string {
	if ss.inside {
		return "T"
	}
	return "I"
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

func (ss *session) send(kind byte, body string) {
	ss.out = append(ss.out, kind)
	ss.out = binary.BigEndian.AppendUint32(ss.out, uint32(len(body)+4))
	ss.out = append(ss.out, body...)
}

func (ss *session) fail(text string) {
	ss.send('E', "SERROR\x00VERROR\x00C0A000\x00M"+text+"\x00\x00")
}

func (ss *session) flush() error {
	_, err := ss.to.Write(ss.out)
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
