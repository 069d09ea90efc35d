package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/netip"
	"net/smtp"
	"net/textproto"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/base/textsafe"
	"github.com/loadstone-db/loadstone/engine/outbound/delivery"
)

// The schemes of mail servers.
const (
	schemeStartTLS  = "smtp"           // TLS by STARTTLS, which has to be offered
	schemeTLS       = "smtps"          // TLS from the first byte
	schemePlaintext = "smtp+plaintext" // no TLS, and no sign-in either
)

var mailPorts = map[string]string{schemeStartTLS: "587", schemeTLS: "465", schemePlaintext: "25"}

const (
	mailTimeout   = 30 * time.Second
	maxRecipients = 50
	maxMailText   = 500
	// maxMailAnswers bounds what a mail server says in a session, TLS included.
	maxMailAnswers = 128 << 10
	mailURLHint    = "write smtp://HOST:587 for STARTTLS, or smtps://HOST:465 for TLS"
)

// parseMailURL reads the address of a mail server.
func parseMailURL(text string) (u *url.URL, port string, err error) {
	u, err = url.Parse(text)
	if err != nil || u.Hostname() == "" || mailPorts[u.Scheme] == "" || strings.Trim(u.Path, "/") != "" ||
		u.RawQuery != "" || u.Fragment != "" {
		return nil, "", engine.InvalidField("url", "is no address of a mail server", mailURLHint)
	}
	if u.User != nil {
		return nil, "", engine.InvalidField("url", "has a user", "write the user as user, and the password as secret")
	}
	if host := strings.ToLower(u.Hostname()); egress.IsForbiddenHost(host) {
		return nil, "", egress.InvalidFlag("url", host)
	}
	if port = u.Port(); port == "" {
		port = mailPorts[u.Scheme]
	}
	return u, port, nil
}

// validateMail is validate for what an e-mail has. The password that is saved goes to the mail server and for the user
// alone that it was saved for.
func (n *Notifier) validateMail(ctx context.Context, field string, h, old Hook, g HookInput) (Hook, error) {
	u, port, err := parseMailURL(h.URL.Reveal())
	if err != nil {
		f := engine.AsError(err).Fields[0]
		return h, engine.InvalidField(field+f.Field, f.Message, f.Hint)
	}
	if g.NewSecret == nil && !h.Secret.IsZero() && (h.URL != old.URL || h.User != old.User) {
		return h, engine.InvalidField(field+"secret", "is needed: the mail server or its user is another now",
			"type the password")
	}
	switch {
	case (h.User == "") != h.Secret.IsZero():
		return h, engine.InvalidField(field+"user", "and a password come together", "give both, or neither")
	case h.User != "" && u.Scheme == schemePlaintext:
		return h, engine.InvalidField(field+"url", "has no TLS, and a password is not sent without", mailURLHint)
	case strings.ContainsAny(h.User+h.Secret.Reveal(), "\r\n\x00"):
		return h, engine.InvalidField(field+"user", "or the password has more than one line", "write each in one line")
	}
	if h.From, err = mailAddress(h.From); err != nil {
		return h, engine.InvalidField(field+"from", "is no e-mail address", "write loadstone@example.com")
	}
	if len(h.To) == 0 || len(h.To) > maxRecipients {
		return h, engine.InvalidField(field+"to", fmt.Sprintf("has %d addresses", len(h.To)),
			fmt.Sprintf("write 1 to %d", maxRecipients))
	}
	h.To = slices.Clone(h.To)
	for i := range h.To {
		if h.To[i], err = mailAddress(h.To[i]); err != nil {
			return h, engine.InvalidField(fmt.Sprintf("%sto[%d]", field, i), "is no e-mail address",
				"write name@example.com")
		}
	}
	h.Signed, h.Address = !h.Secret.IsZero(), u.Scheme+"://"+net.JoinHostPort(u.Hostname(), port)
	return h, n.reachable(ctx, field+"url", u.Hostname(), port)
}

// mailAddress returns an address, "name@host" or "Name <name@host>", without the space around it.
func mailAddress(text string) (string, error) {
	if _, err := mail.ParseAddress(text); err != nil {
		return "", fmt.Errorf("reading the address: %w", err)
	}
	if strings.ContainsFunc(text, textsafe.IsControl) {
		return "", errors.New("the address has control characters")
	}
	return strings.TrimSpace(text), nil
}

// mailer sends notices by e-mail. It opens a connection for each.
type mailer struct {
	url      *url.URL
	port     string
	password secret.Secret
	hidden   []string // the password in every form in which it is sent
	egress   *egress.Policy
	roots    *x509.CertPool
}

func newMailer(h Hook, p *egress.Policy, roots *x509.CertPool) (*mailer, error) {
	u, port, err := parseMailURL(h.URL.Reveal())
	if err != nil {
		return nil, err
	}
	m := &mailer{url: u, port: port, password: h.Secret, egress: p, roots: roots}
	if p := h.Secret.Reveal(); len(p) >= 4 {
		encode := base64.StdEncoding.EncodeToString
		m.hidden = []string{encode([]byte("\x00" + h.User + "\x00" + p)), encode([]byte(p)), p}
	}
	return m, nil
}

// To implements client.
func (m *mailer) To() string {
	return m.url.Scheme + "://" + net.JoinHostPort(m.url.Hostname(), m.port)
}

// LogText implements client.
func (m *mailer) LogText(text string) string {
	for _, form := range m.hidden {
		text = strings.ReplaceAll(text, form, "***")
	}
	return textsafe.Shorten(textsafe.OneLine(text), maxMailText)
}

// Close implements client.
func (m *mailer) Close() {}

// deliver implements client. An answer 4xx, and a server that does not answer, is worth another attempt.
func (m *mailer) deliver(ctx context.Context, h Hook, v Notice) delivery.Outcome {
	ctx, cancel := context.WithTimeout(ctx, mailTimeout)
	defer cancel()
	err := m.send(ctx, h, v)
	if err == nil {
		return delivery.Outcome{Delivered: 1}
	}
	var partial *partialDeliveryError
	if errors.As(err, &partial) {
		return delivery.Outcome{Delivered: 1, Err: err}
	}
	var answer *textproto.Error
	var refused *refusedMailError
	retry := !errors.As(err, &refused)
	if errors.As(err, &answer) {
		retry = answer.Code/100 == 4
	}
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("the mail server has not answered for %s: %w", mailTimeout, context.DeadlineExceeded)
	}
	return delivery.Outcome{Retry: retry, Err: err}
}

// refusedMailError is why an e-mail is not sent, this time and the next.
type refusedMailError struct{ why string }

func (r *refusedMailError) Error() string { return r.why }

// send sends an e-mail.
func (m *mailer) send(ctx context.Context, h Hook, v Notice) error {
	message, err := mailMessage(h, v, time.Now())
	if err != nil {
		return err
	}
	conn, err := m.egress.Dial(ctx, "tcp", net.JoinHostPort(m.url.Hostname(), m.port))
	if err != nil {
		return fmt.Errorf("connecting to the mail server: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	at, unknown := netip.ParseAddrPort(conn.RemoteAddr().String())
	hidden := unknown != nil || egress.IsInternal(at.Addr())
	if err := m.talk(ctx, &boundedAnswers{Conn: conn, left: maxMailAnswers}, h, message); err != nil {
		if hidden {
			return hideAnswer(err)
		}
		return err
	}
	return nil
}

// boundedAnswers is a connection on which a mail server says so much and no more: it is read line by line into memory.
type boundedAnswers struct {
	net.Conn
	left int
}

func (b *boundedAnswers) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, &refusedMailError{fmt.Sprintf("the mail server said more than %d kB", maxMailAnswers>>10)}
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err //nolint:wrapcheck // it is that of the connection
}

// hideAnswer keeps back what a server of a private network has said: whoever names the server, and reads why a delivery
// failed, would read a service through this one that only this one reaches.
func hideAnswer(err error) error {
	var answer *textproto.Error
	var refused *refusedMailError
	var unreached *net.OpError
	var certificate *tls.CertificateVerificationError
	var partial *partialDeliveryError
	switch {
	case errors.As(err, &partial):
		return &partialDeliveryError{hideAnswer(partial.refused)}
	case errors.As(err, &answer):
		return fmt.Errorf("%s: %w", strings.TrimSuffix(strings.TrimSuffix(err.Error(), answer.Error()), ": "),
			&textproto.Error{Code: answer.Code, Msg: "(its text is not shown: the mail server is in a private network)"})
	case errors.As(err, &refused), errors.As(err, &unreached), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &certificate):
		return errors.New("the certificate of the mail server is not trusted")
	}
	return errors.New("the mail server is in a private network, and does not answer in SMTP")
}

// talk is the session with a mail server.
func (m *mailer) talk(ctx context.Context, conn net.Conn, h Hook, message []byte) error {
	security := &tls.Config{ServerName: m.url.Hostname(), MinVersion: tls.VersionTLS12, RootCAs: m.roots}
	if m.url.Scheme == schemeTLS {
		encrypted := tls.Client(conn, security)
		if err := encrypted.HandshakeContext(ctx); err != nil {
			return fmt.Errorf("encrypting the connection: %w", err)
		}
		conn = encrypted
	}
	c, err := smtp.NewClient(conn, m.url.Hostname())
	if err != nil {
		return fmt.Errorf("greeting the mail server: %w", err)
	}
	defer func() { _ = c.Close() }()
	if err := c.Hello(ownName()); err != nil {
		return fmt.Errorf("greeting the mail server: %w", err)
	}
	if m.url.Scheme == schemeStartTLS {
		if offered, _ := c.Extension("STARTTLS"); !offered {
			return &refusedMailError{"the mail server offers no STARTTLS: nothing is sent without TLS"}
		}
		if err := c.StartTLS(security); err != nil {
			return fmt.Errorf("encrypting the connection: %w", err)
		}
	}
	if h.User != "" {
		if err := signIn(c, h.User, m.password.Reveal(), m.url.Hostname()); err != nil {
			return err
		}
	}
	return transfer(c, h, message)
}

// partialDeliveryError names the recipients that a mail server has refused, while others have the e-mail.
type partialDeliveryError struct{ refused error }

func (p *partialDeliveryError) Error() string { return p.refused.Error() }

// transfer hands over an e-mail. Recipients that are refused for good are left out, if there are others; one that is
// refused for now has the whole e-mail sent later.
func transfer(c *smtp.Client, h Hook, message []byte) error {
	if err := c.Mail(bareAddress(h.From)); err != nil {
		return fmt.Errorf("the sender %s was refused: %w", h.From, err)
	}
	var refused []error
	for _, to := range h.To {
		err := c.Rcpt(bareAddress(to))
		if err == nil {
			continue
		}
		refused = append(refused, fmt.Errorf("the recipient %s was refused: %w", to, err))
		var answer *textproto.Error
		if !errors.As(err, &answer) || answer.Code/100 != 5 {
			return refused[len(refused)-1]
		}
	}
	if len(refused) == len(h.To) {
		return refused[0]
	}
	w, err := c.Data()
	if err != nil {
		return fmt.Errorf("the message was refused: %w", err)
	}
	if _, err := w.Write(message); err != nil {
		return fmt.Errorf("sending the message: %w", err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("the message was refused: %w", err)
	}
	_ = c.Quit() // it is delivered
	if len(refused) > 0 {
		return &partialDeliveryError{refused[0]}
	}
	return nil
}

// headerAddress is an address as it stands in a header: a name beyond ASCII is encoded.
func headerAddress(text string) string {
	a, err := mail.ParseAddress(text)
	if err != nil || a.Name == "" {
		return bareAddress(text)
	}
	return a.String()
}

// bareAddress is an address without the name; it was checked before.
func bareAddress(text string) string {
	a, err := mail.ParseAddress(text)
	if err != nil {
		return text
	}
	return a.Address
}

// ownName is what this server calls itself to mail servers.
func ownName() string {
	name, err := os.Hostname()
	if err != nil || name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return r != '.' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return "localhost"
	}
	return name
}

// signIn signs in by PLAIN or LOGIN, of which mail servers have one at least.
func signIn(c *smtp.Client, user, password, host string) error {
	_, offered := c.Extension("AUTH")
	ways := strings.Fields(strings.ToUpper(offered))
	var way smtp.Auth
	switch {
	case slices.Contains(ways, "PLAIN"):
		way = smtp.PlainAuth("", user, password, host)
	case slices.Contains(ways, "LOGIN"):
		way = &loginAuth{user, password}
	default:
		return &refusedMailError{"the mail server offers neither AUTH PLAIN nor AUTH LOGIN"}
	}
	if err := c.Auth(way); err != nil {
		var answer *textproto.Error
		if errors.As(err, &answer) { // which may repeat what it was sent
			err = &textproto.Error{Code: answer.Code, Msg: "(its text is not shown: it may have the password)"}
		}
		return fmt.Errorf("signing in to the mail server as %s: %w", user, err)
	}
	return nil
}

// loginAuth is AUTH LOGIN, which the standard library lacks.
type loginAuth struct{ user, password string }

// Start implements smtp.Auth.
func (a *loginAuth) Start(server *smtp.ServerInfo) (string, []byte, error) {
	if !server.TLS {
		return "", nil, &refusedMailError{"a password is not sent without TLS"}
	}
	return "LOGIN", nil, nil
}

// Next implements smtp.Auth: the server asks for the user first.
func (a *loginAuth) Next(question []byte, more bool) ([]byte, error) {
	switch {
	case !more:
		return nil, nil
	case strings.Contains(strings.ToLower(string(question)), "user"):
		return []byte(a.user), nil
	default:
		return []byte(a.password), nil
	}
}

// mailMessage is a notice as an e-mail, with its headers.
func mailMessage(h Hook, v Notice, now time.Time) ([]byte, error) {
	plain := func(text string) string { return textsafe.Shorten(textsafe.OneLine(text), maxTextLength) }
	domain := "loadstone"
	if _, host, ok := strings.Cut(bareAddress(h.From), "@"); ok {
		domain = host
	}
	var b bytes.Buffer
	header := func(name, value string) { fmt.Fprintf(&b, "%s: %s\r\n", name, value) }
	to := make([]string, len(h.To))
	for i, address := range h.To {
		to[i] = headerAddress(address)
	}
	header("From", headerAddress(h.From))
	header("To", strings.Join(to, ",\r\n "))
	header("Subject", mime.QEncoding.Encode("utf-8", "[Loadstone] "+headline(v, plain)))
	header("Date", now.Format(time.RFC1123Z))
	header("Message-ID", "<"+v.DeliveryID+"@"+domain+">") // the same for each attempt
	header("Auto-Submitted", "auto-generated")
	header("X-Loadstone-Event", string(v.Event))
	header("MIME-Version", "1.0")
	header("Content-Type", "text/plain; charset=utf-8")
	header("Content-Transfer-Encoding", "quoted-printable")
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b)
	_, err := io.WriteString(w, strings.ReplaceAll(mailText(v, plain), "\n", "\r\n"))
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("writing the message: %w", err)
	}
	return b.Bytes(), nil
}

// mailText is the text of an e-mail: what has happened, and the figures.
func mailText(v Notice, plain func(string) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n", headline(v, plain))
	if v.Reason != "" {
		fmt.Fprintf(&b, "%s.\n", strings.TrimSuffix(plain(v.Reason), "."))
	}
	if v.failsThresholds() {
		b.WriteString("A threshold failed.\n")
	}
	if v.Baseline != nil {
		for _, worse := range v.Baseline.Worse {
			fmt.Fprintf(&b, "- %s\n", plain(worse))
		}
	}
	b.WriteString("\n")
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-12s %s\n", name+":", value)
		}
	}
	number := func(value *float64, factor float64, digits int, unit string) string {
		if value == nil {
			return ""
		}
		return strconv.FormatFloat(*value*factor, 'f', digits, 64) + unit
	}
	stamp := func(t engine.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format("2006-01-02 15:04:05") + " UTC"
	}
	row("Template", plain(v.TemplateName))
	if v.Schedule != nil {
		row("Due", stamp(v.Schedule.DueAt))
	}
	row("Throughput", number(v.QPS, 1, 1, " operations/s"))
	row("P95", number(v.P95Ms, 1, 2, " ms"))
	row("Error rate", number(v.ErrorRate, 100, 2, " %"))
	if v.Validity != "" {
		s := engine.Summary{Validity: v.Validity, Simulated: v.Simulated, Emulated: v.Emulated}
		row("Validity", s.VerdictText())
	}
	row("Started", stamp(v.StartTime))
	row("Ended", stamp(v.EndTime))
	if v.URL != "" {
		fmt.Fprintf(&b, "\n%s\n", v.URL)
	}
	return b.String()
}
