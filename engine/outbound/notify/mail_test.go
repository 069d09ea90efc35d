package notify_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"math/big"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/outbound/notify"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

// post is a mail server and what it has taken.
type post struct {
	address, user, password string
	ways                    []string // of signing in
	roots                   *x509.CertPool

	mu    sync.Mutex
	mails []letter
	tries int
	busy  int      // so many recipients are refused for now
	gone  []string // recipients that are refused for good
}

// letter is an e-mail with its envelope.
type letter struct {
	from, user string
	to         []string
	encrypted  bool
	text       []byte
}

// session implements smtp.AuthSession.
type session struct {
	*post
	conn   *smtp.Conn
	letter letter
}

func (s *session) Reset()        { s.letter = letter{user: s.letter.user} }
func (s *session) Logout() error { return nil }

func (s *session) AuthMechanisms() []string { return s.ways }

func (s *session) Auth(way string) (sasl.Server, error) {
	check := func(user, password string) error {
		if user != s.user || password != s.password {
			return &smtp.SMTPError{Code: 535, EnhancedCode: smtp.EnhancedCode{5, 7, 8}, Message: "no entry for " + password}
		}
		s.letter.user = user
		return nil
	}
	if way == sasl.Plain {
		return sasl.NewPlainServer(func(_, user, password string) error { return check(user, password) }), nil
	}
	return &loginServer{check: check}, nil
}

// loginServer is the server's side of AUTH LOGIN.
type loginServer struct {
	step  int
	user  string
	check func(user, password string) error
}

func (l *loginServer) Next(answer []byte) (question []byte, done bool, err error) {
	l.step++
	switch l.step {
	case 1:
		return []byte("Username:"), false, nil
	case 2:
		l.user = string(answer)
		return []byte("Password:"), false, nil
	}
	return nil, true, l.check(l.user, string(answer))
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.user != "" && s.letter.user == "" {
		return smtp.ErrAuthRequired
	}
	s.letter.from = from
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries++
	if s.busy > 0 {
		s.busy--
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "greylisted"}
	}
	if slices.Contains(s.gone, to) {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "the secret of the network"}
	}
	s.letter.to = append(s.letter.to, to)
	return nil
}

func (s *session) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	_, encrypted := s.conn.TLSConnectionState()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.letter.text, s.letter.encrypted = text, encrypted
	s.mails = append(s.mails, s.letter)
	return nil
}

// office starts a mail server on loopback: with encrypted "none", "starttls" or "tls".
func office(t *testing.T, p *post, encrypted string) *post {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	p.roots = x509.NewCertPool()
	p.roots.AddCert(certificate)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.address = ln.Addr().String()
	security := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &session{post: p, conn: c}, nil
	}))
	s.Domain, s.ErrorLog = "mail.example", log.New(io.Discard, "", 0)
	switch encrypted {
	case "starttls":
		s.TLSConfig = security
	case "tls":
		ln = tls.NewListener(ln, security)
	}
	served := make(chan struct{})
	go func() { defer close(served); _ = s.Serve(ln) }()
	t.Cleanup(func() { _ = s.Close(); <-served })
	return p
}

func (p *post) await(t *testing.T, n int) []letter {
	t.Helper()
	for range 400 {
		p.mu.Lock()
		mails := slices.Clone(p.mails)
		p.mu.Unlock()
		if len(mails) >= n {
			return mails
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Fatalf("%d e-mails have not come", n)
	return nil
}

func byMail(scheme string, p *post, events ...notify.Event) notify.HookInput {
	h := hook("mail", notify.Email, scheme+"://"+p.address, p.password, events...)
	h.From, h.To, h.User = "Löad Stone <bench@example.com>", []string{"ada@example.com", "Bob <bob@example.com>"}, p.user
	return h
}

func mailing(t *testing.T, r runs, roots *x509.CertPool) *notify.Notifier {
	t.Helper()
	s, _ := postgrestest.Open(t)
	n := notify.Start(notify.Options{Settings: s, Runs: r, Log: zerolog.Nop(), MailRoots: roots,
		URL: func() string { return "https://bench.example" }, SettleTimeout: 3 * time.Second})
	t.Cleanup(n.Close)
	return n
}

// TestAnEMailArrives: over STARTTLS and TLS, by either way of signing in, again after a refusal for now; and what it
// says is what a reader needs, whatever a run is called.
func TestAnEMailArrives(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scheme, encrypted string
		post              *post
	}{
		"STARTTLS":            {"smtp", "starttls", &post{user: "u", password: "pass word", ways: []string{"PLAIN"}}},
		"TLS":                 {"smtps", "tls", &post{user: "u", password: "pass word", ways: []string{"LOGIN"}}},
		"nobody signs in":     {"smtp", "starttls", &post{}},
		"refused for now":     {"smtp", "starttls", &post{busy: 1}},
		"without encryption":  {"smtp+plaintext", "none", &post{}},
		"LOGIN over STARTTLS": {"smtp", "starttls", &post{user: "u", password: "pw", ways: []string{"LOGIN"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			no, qps, p95, rate := false, 1234.56, 7.891, 0.0123
			row := ended("r", engine.StatusCompleted, &no, nil)
			row.RunName = "nächtlich\r\nBcc: eve@example.com\u202e" + strings.Repeat("x", 20)
			row.QPS, row.P95Ms, row.ErrorRate = &qps, &p95, &rate
			p := office(t, cmp.Or(c.post, &post{}), c.encrypted)
			n := mailing(t, runs{"r": row}, p.roots)
			l, err := n.Save(t.Context(), 0, []notify.HookInput{byMail(c.scheme, p, notify.Threshold)},
				store.User{Name: "ada"})
			if err != nil || l.Hooks[0].Address != c.scheme+"://"+p.address || l.Hooks[0].Signed != (p.user != "") {
				t.Fatalf("%+v, %v", l, err)
			}
			n.Ended("r")
			got := p.await(t, 1)[0]
			if got.from != "bench@example.com" || got.user != p.user || got.encrypted != (c.encrypted != "none") ||
				!slices.Equal(got.to, []string{"ada@example.com", "bob@example.com"}) {
				t.Errorf("the envelope is %+v", got)
			}
			m, err := mail.ReadMessage(bytes.NewReader(got.text))
			if err != nil {
				t.Fatal(err)
			}
			subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
			if err != nil || !strings.HasPrefix(subject, "[Loadstone] Run nächtlich  Bcc: eve@example.comxxx") ||
				!strings.HasSuffix(subject, " completed") {
				t.Errorf("the subject is %q, %v", subject, err)
			}
			from, err := m.Header.AddressList("From")
			if err != nil || from[0].Name != "Löad Stone" || m.Header.Get("Bcc") != "" ||
				m.Header.Get("Auto-Submitted") != "auto-generated" || m.Header.Get("Message-Id") == "" {
				t.Errorf("the header is %+v, %v", m.Header, err)
			}
			body, err := io.ReadAll(quotedprintable.NewReader(m.Body))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"A threshold failed.", "1234.6 operations/s", "7.89 ms", "1.23 %",
				"https://bench.example/runs/r"} {
				if !strings.Contains(string(body), want) {
					t.Errorf("the e-mail does not say %q:\n%s", want, body)
				}
			}
		})
	}
}

// TestAnEMailThatIsRefused: each fault is said, is not tried again where that is of no use, and shows neither the
// password nor what a server of a private network says.
func TestAnEMailThatIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scheme, encrypted string
		post              *post
		roots             bool
		change            func(*notify.HookInput)
		says              string
	}{
		"a certificate that is not trusted": {scheme: "smtp", encrypted: "starttls", says: "certificate"},
		"no STARTTLS":                       {scheme: "smtp", encrypted: "none", says: "offers no STARTTLS"},
		"TLS where there is none":           {scheme: "smtps", encrypted: "none", roots: true, says: "does not answer in SMTP"},
		"a wrong password": {scheme: "smtp", encrypted: "starttls", roots: true,
			post: &post{user: "u", password: "right", ways: []string{"PLAIN"}}, says: "signing in to the mail server as u: 535",
			change: func(h *notify.HookInput) { s := secret.New("wrong-word"); h.NewSecret = &s }},
		"no way to sign in": {scheme: "smtp", encrypted: "starttls", roots: true, says: "AUTH",
			post: &post{user: "u", password: "right", ways: []string{"XOAUTH2"}}},
		"no recipient is known": {scheme: "smtp", encrypted: "starttls", roots: true, says: "the recipient ada@example.com",
			post: &post{gone: []string{"ada@example.com", "bob@example.com"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := office(t, cmp.Or(c.post, &post{}), c.encrypted)
			roots := x509.NewCertPool()
			if c.roots {
				roots = p.roots
			}
			n := mailing(t, runs{}, roots)
			h := byMail(c.scheme, p, notify.Failed)
			if c.change != nil {
				c.change(&h)
			}
			l, err := n.Save(t.Context(), 0, []notify.HookInput{h}, store.User{Name: "ada"})
			if err != nil {
				t.Fatal(err)
			}
			d, err := n.SendTest(t.Context(), l.Hooks[0].ID)
			if err != nil || d.Delivered || !strings.Contains(d.Error, c.says) {
				t.Errorf("%+v, %v; want %q", d, err, c.says)
			}
			if strings.Contains(d.Error, "wrong-word") || strings.Contains(d.Error, "secret of the network") {
				t.Errorf("it shows %q", d.Error)
			}
			if len(p.mails) > 0 {
				t.Errorf("%d e-mails have come", len(p.mails))
			}
		})
	}
}

// TestOneRecipientIsUnknown: the others have the e-mail, and the log says who has not.
func TestOneRecipientIsUnknown(t *testing.T) {
	t.Parallel()
	p := office(t, &post{gone: []string{"ada@example.com"}}, "starttls")
	n := mailing(t, runs{}, p.roots)
	l, err := n.Save(t.Context(), 0, []notify.HookInput{byMail("smtp", p, notify.Failed)}, store.User{Name: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	d, err := n.SendTest(t.Context(), l.Hooks[0].ID)
	if err != nil || !d.Delivered || !strings.Contains(d.Error, "ada@example.com was refused: 550") {
		t.Errorf("%+v, %v", d, err)
	}
	if got := p.await(t, 1); len(got) != 1 || !slices.Equal(got[0].to, []string{"bob@example.com"}) {
		t.Errorf("%+v", got)
	}
}

// TestMailHooksThatAreRefused: at once, with the field; and a password goes nowhere but where it was saved for.
func TestMailHooksThatAreRefused(t *testing.T) {
	t.Parallel()
	only, err := egress.Parse([]string{"10.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	n := start(t, runs{}, only)
	given := func(change func(*notify.HookInput)) notify.HookInput {
		h := hook("mail", notify.Email, "smtp://10.0.0.1:587", "pass", notify.Failed)
		h.From, h.To, h.User = "a@example.com", []string{"b@example.com"}, "u"
		change(&h)
		return h
	}
	to := func(url string) func(*notify.HookInput) {
		return func(h *notify.HookInput) { s := secret.New(url); h.NewURL = &s }
	}
	for field, changes := range map[string][]func(*notify.HookInput){
		"hooks[0].url": {to(""), to("https://10.0.0.1/"), to("smtp://10.0.0.1/path"), to("smtp://u:p@10.0.0.1"),
			to("smtp://169.254.169.254"), to("smtp://127.0.0.1:25"), to("smtp+plaintext://10.0.0.1"), to("smtp://10.0.0.1?x=1")},
		"hooks[0].from": {func(h *notify.HookInput) { h.From = "" },
			func(h *notify.HookInput) { h.From = "a@example.com\r\nBcc: c@example.com" }},
		"hooks[0].to":    {func(h *notify.HookInput) { h.To = nil }},
		"hooks[0].to[0]": {func(h *notify.HookInput) { h.To = []string{"nobody"} }},
		"hooks[0].user": {func(h *notify.HookInput) { h.User = "" },
			func(h *notify.HookInput) { h.NewSecret = nil },
			func(h *notify.HookInput) { h.User = "u\r\nQUIT" }},
		"hooks[0].kind": {func(h *notify.HookInput) { h.Kind = notify.Webhook; to("http://10.0.0.1/")(h) }},
	} {
		for i, change := range changes {
			_, err := n.Save(t.Context(), 0, []notify.HookInput{given(change)}, store.User{Name: "ada"})
			if e := engine.AsError(err); e == nil || len(e.Fields) != 1 || e.Fields[0].Field != field || e.Fields[0].Hint == "" {
				t.Errorf("%s %d: %v", field, i, err)
			}
		}
	}
	l, err := n.Save(t.Context(), 0, []notify.HookInput{given(func(*notify.HookInput) {})}, store.User{Name: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	again := func(change func(*notify.HookInput)) error {
		h := notify.HookInput{Hook: l.Hooks[0]}
		change(&h)
		now, err := n.Save(t.Context(), l.Version, []notify.HookInput{h}, store.User{Name: "ada"})
		if err == nil {
			l = now
		}
		return err
	}
	for name, change := range map[string]func(*notify.HookInput){
		"another server": to("smtp://10.0.0.2:587"),
		"another port":   to("smtps://10.0.0.1"),
		"another user":   func(h *notify.HookInput) { h.User = "v" },
	} {
		if e := engine.AsError(again(change)); e == nil || len(e.Fields) != 1 || e.Fields[0].Field != "hooks[0].secret" {
			t.Errorf("%s: %v", name, e)
		}
	}
	if err := again(func(h *notify.HookInput) { h.To = []string{"c@example.com"} }); err != nil ||
		l.Hooks[0].Secret.Reveal() != "pass" {
		t.Errorf("another recipient: %v", err)
	}
	// As a webhook it has neither the address nor the password of the mail server.
	if err := again(func(h *notify.HookInput) {
		h.Kind, h.From, h.To, h.User = notify.Webhook, "", nil, ""
		to("http://10.0.0.1/")(h)
	}); err != nil || !l.Hooks[0].Secret.IsZero() || l.Hooks[0].Signed {
		t.Errorf("as a webhook: %+v, %v", l.Hooks, err)
	}
}

// TestAMailServerThatHangs is given up with its context, and leaves nothing behind.
func TestAMailServerThatHangs(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	n := mailing(t, runs{}, nil)
	h := byMail("smtp", &post{address: ln.Addr().String()}, notify.Failed)
	l, err := n.Save(t.Context(), 0, []notify.HookInput{h}, store.User{Name: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begun := time.Now()
	d, err := n.SendTest(ctx, l.Hooks[0].ID)
	if time.Since(begun) > 10*time.Second || err != nil && !errors.Is(err, context.DeadlineExceeded) || d.Delivered {
		t.Errorf("%+v, %v after %s", d, err, time.Since(begun))
	}
}

// TestAMailServerThatTalksWithoutEnd is given up early, and is not asked again.
func TestAMailServerThatTalksWithoutEnd(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	said := make(chan int, 1)
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		total := 0
		for total < 64<<20 { // more than the buffers of a connection
			n, err := io.WriteString(conn, strings.Repeat("220-welcome\r\n", 1000))
			if total += n; err != nil {
				break
			}
		}
		said <- total
	}()
	n := mailing(t, runs{}, nil)
	h := byMail("smtp", &post{address: ln.Addr().String()}, notify.Failed)
	l, err := n.Save(t.Context(), 0, []notify.HookInput{h}, store.User{Name: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	d, err := n.SendTest(t.Context(), l.Hooks[0].ID)
	if err != nil || d.Delivered || !strings.Contains(d.Error, "said more than 128 kB") {
		t.Errorf("%+v, %v", d, err)
	}
	if total := <-said; total >= 64<<20 {
		t.Errorf("all of its %d bytes were read", total)
	}
}
