package notify

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/smtp"
	"net/textproto"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine/base/secret"
)

// TestAServerThatRepeatsThePassword shows it to nobody, in none of the forms in which it was sent.
func TestAServerThatRepeatsThePassword(t *testing.T) {
	t.Parallel()
	m, err := newMailer(
		Hook{URL: secret.New("smtp://mail.example"), User: "u", Secret: secret.New("word of ours")},
		nil,
		nil,
	)
	if err != nil {
		t.Fatal(err)
	}
	const sent = "AHUAd29yZCBvZiBvdXJz d29yZCBvZiBvdXJz word of ours"
	if got := m.LogText("refused: " + sent); got != "refused: *** *** ***" {
		t.Errorf("the log has %q", got)
	}
	client, server := net.Pipe()
	defer client.Close()
	go func() {
		defer server.Close()
		lines := bufio.NewScanner(server)
		_, _ = io.WriteString(server, "220 mail.example\r\n")
		for lines.Scan() {
			answer := "250-mail.example\r\n250 AUTH PLAIN\r\n"
			if strings.HasPrefix(lines.Text(), "AUTH") {
				answer = "535 no entry for " + lines.Text() + "\r\n"
			}
			if _, err := io.WriteString(server, answer); err != nil {
				return
			}
		}
	}()
	c, err := smtp.NewClient(client, "localhost")
	if err != nil {
		t.Fatal(err)
	}
	err = signIn(c, "u", "abc", "localhost") // too short to be found in a text
	var answer *textproto.Error
	if !errors.As(err, &answer) || answer.Code != 535 || strings.Contains(err.Error(), "no entry") {
		t.Errorf("it says %v", err)
	}
}
