package embedded

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/loadstone-db/loadstone/engine"
)

// Listen says where logins that read results are let in over TCP. No other role is, and they reach no other database.
type Listen struct {
	Host string
	Port int
	// Cert and Key are files in PEM; with them TLS is asked of everybody.
	Cert, Key string
}

// The copies of certificate and key that Postgres reads: it refuses a key that others can read, or that is not its own.
const certFile, keyFile = "query.crt", "query.key"

// listenSettings adds the settings of TCP.
func (p layout) listenSettings(id identity, extra map[string]string) error {
	l := p.listen
	if l == nil {
		return nil
	}
	probe, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", l.address())
	if err != nil {
		why := err.Error()
		if errors.Is(err, syscall.EADDRINUSE) {
			why = "something else listens there"
		}
		return &engine.Error{Code: engine.CodeInvalid, Cause: err,
			Message: fmt.Sprintf("The results database cannot listen on %s: %s.", l.address(), why),
			Hint:    "choose another address with --query-listen"}
	}
	if err := probe.Close(); err != nil {
		return fmt.Errorf("trying the address of the results database: %w", err)
	}
	extra["listen_addresses"], extra["port"] = l.Host, strconv.Itoa(l.Port)
	extra["password_encryption"] = "scram-sha-256"
	// Who does not read what was sent is let go: statement_timeout does not end a session that waits for its client, and
	// what that has read stays locked.
	for name, value := range map[string]string{"tcp_user_timeout": "60s", "tcp_keepalives_idle": "60s",
		"tcp_keepalives_interval": "10s", "tcp_keepalives_count": "3"} {
		extra[name] = value
	}
	if l.Cert == "" {
		return nil
	}
	if _, err := tls.LoadX509KeyPair(l.Cert, l.Key); err != nil {
		return &engine.Error{Code: engine.CodeInvalid, Cause: err,
			Message: fmt.Sprintf("%s and %s cannot be used for TLS: %v.", l.Cert, l.Key, err),
			Hint: "--query-cert and --query-key name a certificate, with those that signed it, and its key without a " +
				"passphrase, in PEM"}
	}
	for from, to := range map[string]string{l.Cert: certFile, l.Key: keyFile} {
		text, err := os.ReadFile(from)
		if err != nil {
			return &engine.Error{Code: engine.CodeInvalid, Cause: err, Message: fmt.Sprintf("%s cannot be read: %v.", from, err)}
		}
		path := filepath.Join(p.cluster, to)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return unusable(p.cluster, err)
		}
		if err := id.chown(path); err != nil {
			return unusable(p.cluster, err)
		}
	}
	extra["ssl"], extra["ssl_cert_file"], extra["ssl_key_file"] = "on", certFile, keyFile
	return nil
}

func (l *Listen) address() string { return net.JoinHostPort(l.Host, strconv.Itoa(l.Port)) }

// remoteAccess says who gets in over TCP: logins that read results, into the results database, by their own passwords.
// The role that they are members of is Loadstone's own.
func (p layout) remoteAccess() string {
	if p.listen == nil || p.password == "" {
		return ""
	}
	route := "host"
	if p.listen.Cert != "" {
		route = "hostssl"
	}
	return "host all " + ResultsReader + " all reject\n" + route + " " + ResultsDatabase + " +" + ResultsReader +
		" all scram-sha-256\n"
}

// readerDSN is how a login connects: over TCP where there is some, else on the socket.
func (p layout) readerDSN(role, password string) string {
	if p.listen == nil {
		p.password = password
		return p.dsn(ResultsDatabase, role)
	}
	host, mode := p.listen.Host, "disable"
	if ip := net.ParseIP(host); host == "*" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	if p.listen.Cert != "" {
		mode = "require"
	}
	return (&url.URL{Scheme: "postgres", User: url.UserPassword(role, password),
		Host: net.JoinHostPort(host, strconv.Itoa(p.port)), Path: "/" + ResultsDatabase,
		RawQuery: "sslmode=" + mode}).String()
}
