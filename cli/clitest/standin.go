package clitest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"strings"
	"testing"
	"time"
)

// StandIn is `loadstone snowsim` in a process of its own.
type StandIn struct {
	*Process
	Dsn, Address string
}

// StandIn starts the stand-in on the program's own files.
func (p *Program) StandIn(args ...string) *StandIn {
	p.T.Helper()
	s := &StandIn{Process: Launch(p.T, append([]string{"snowsim", "--json", "--data-dir", p.Path("snowsim")}, args...)...)}
	WaitFor(p.T, StartTimeout, "line of JSON of the stand-in", func() bool {
		select {
		case <-s.Done:
			p.T.Fatalf("the stand-in ended: %s", s.Out.String())
		default:
		}
		for line := range strings.Lines(s.Out.String()) {
			var ready struct{ DSN, Address string }
			if json.Unmarshal([]byte(line), &ready) == nil && ready.DSN != "" {
				s.Dsn, s.Address = ready.DSN, ready.Address
			}
		}
		return s.Dsn != ""
	})
	return s
}

// Stop ends the stand-in as a user does.
func (s *StandIn) Stop(t *testing.T) {
	t.Helper()
	_ = s.Cmd.Process.Signal(os.Interrupt)
	if err := s.Wait(t, time.Minute); err != nil {
		t.Errorf("the stand-in ended with %v: %s", err, s.Out.String())
	}
}

// KeyPair is a key, as the connection takes it, and the file of its public part.
func (p *Program) KeyPair(name string) (private, publicFile string) {
	p.T.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		p.T.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		p.T.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		p.T.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})),
		p.Write(name, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})))
}
