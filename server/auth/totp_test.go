package auth

import (
	"encoding/base32"
	"errors"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

var ada = store.User{UserID: "1", Name: "ada"}

// TestCodesAreThoseOfTheRFC holds the codes of RFC 6238, appendix B, for SHA-1: the last six of its eight digits, for
// that is what is asked for here.
func TestCodesAreThoseOfTheRFC(t *testing.T) {
	t.Parallel()
	secret := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString([]byte("12345678901234567890"))
	for unix, code := range map[int64]string{59: "94287082", 1111111109: "07081804", 1111111111: "14050471",
		1234567890: "89005924", 2000000000: "69279037", 20000000000: "65353130"} {
		f := factor{Secret: secret}
		step, ok := f.match(code[2:], time.Unix(unix, 0))
		if !ok || step != uint64(unix/30) {
			t.Errorf("at %d %s is of %d, %t", unix, code[2:], step, ok)
		}
		for _, wrong := range []string{"", "000000", code, code[3:], "abcdef", code[2:7] + "x"} {
			if _, ok := f.match(wrong, time.Unix(unix, 0)); ok {
				t.Errorf("at %d %q is right", unix, wrong)
			}
		}
		for _, off := range []int64{-30, 30} {
			if _, ok := f.match(code[2:], time.Unix(unix+off, 0)); !ok {
				t.Errorf("%d s off, %s is wrong", off, code[2:])
			}
		}
		for _, off := range []int64{-90, 90} {
			if _, ok := f.match(code[2:], time.Unix(unix+off, 0)); ok {
				t.Errorf("%d s off, %s is right", off, code[2:])
			}
		}
	}
}

type phone struct {
	*SecondFactors
	at     time.Time
	secret string
}

// enrolledUser is a user with a second factor and its recovery codes.
func enrolledUser(t *testing.T) (*phone, []string) {
	t.Helper()
	s, _ := postgrestest.Open(t)
	p := &phone{at: time.Unix(1_800_000_000, 0)}
	p.SecondFactors = &SecondFactors{Settings: s, Now: func() time.Time { return p.at }}
	if err := p.Check(t.Context(), ada, ""); err != nil {
		t.Fatalf("who has none is asked: %v", err)
	}
	b, err := p.Enroll(t.Context(), ada, "Loadstone at db.example:8443")
	if err != nil {
		t.Fatal(err)
	}
	p.secret = b.Secret
	if u, err := url.Parse(b.URL); err != nil || u.Scheme != "otpauth" || u.Query().Get("secret") != b.Secret ||
		!strings.HasSuffix(u.Path, ":ada") || u.Query().Get("issuer") != "Loadstone at db.example:8443" {
		t.Errorf("address %q, %v", b.URL, err)
	}
	if err := p.Check(t.Context(), ada, ""); err != nil {
		t.Errorf("who has confirmed nothing is asked: %v", err)
	}
	if _, err := p.Confirm(t.Context(), ada, "000000"); !engine.HasCode(err, engine.CodeInvalid) {
		t.Errorf("a wrong code confirms: %v", err)
	}
	codes, err := p.Confirm(t.Context(), ada, p.code(t))
	if err != nil || len(codes) != recoveryCodes {
		t.Fatalf("recovery codes %v, %v", codes, err)
	}
	return p, codes
}

func (p *phone) code(t *testing.T) string {
	t.Helper()
	code, err := hotp.GenerateCodeCustom(p.secret, uint64(p.at.Unix()/30),
		hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1})
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// TestEachCodeIsGoodOnce: that of the app, also the one that confirmed, and every recovery code.
func TestEachCodeIsGoodOnce(t *testing.T) {
	t.Parallel()
	p, codes := enrolledUser(t)
	check := func(code string, want error) {
		t.Helper()
		if err := p.Check(t.Context(), ada, code); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", code, err, want)
		}
	}
	check("", ErrCodeRequired)
	check(p.code(t), ErrWrongCode)
	before := p.code(t)
	p.at = p.at.Add(period)
	check(p.code(t), nil)
	check(p.code(t), ErrWrongCode)
	check(before, ErrWrongCode) // within the skew still, and older than what was used
	check(strings.ToUpper(strings.ReplaceAll(codes[3], "-", " ")), nil)
	check(codes[3], ErrWrongCode)
	if s, err := p.Status(t.Context(), ada.UserID); err != nil || !s.Enabled || s.RecoveryLeft != recoveryCodes-1 {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := p.Enroll(t.Context(), ada, "x"); !engine.HasCode(err, engine.CodeConflict) {
		t.Errorf("a confirmed secret is replaced: %v", err)
	}
	if err := p.Remove(t.Context(), ada.UserID, "root"); err != nil {
		t.Fatal(err)
	}
	check("", nil)
	if s, err := p.Status(t.Context(), ada.UserID); err != nil || s.Enabled {
		t.Errorf("after its end %+v, %v", s, err)
	}
}

// TestOneOfManyIsLetIn: many send the same code at once, as somebody does who looks over a shoulder.
func TestOneOfManyIsLetIn(t *testing.T) {
	t.Parallel()
	p, _ := enrolledUser(t)
	p.at = p.at.Add(period)
	code := p.code(t)
	var in atomic.Int32
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if p.Check(t.Context(), ada, code) == nil {
				in.Add(1)
			}
		})
	}
	all.Wait()
	if in.Load() != 1 {
		t.Errorf("%d were let in", in.Load())
	}
}

func TestThePictureIsBlackOnWhite(t *testing.T) {
	t.Parallel()
	svg, err := qrCode("otpauth://totp/Loadstone:ada?secret=ABC&issuer=Loadstone")
	if err != nil || !strings.HasPrefix(svg, "<svg ") || strings.Count(svg, "M") < 100 || len(svg) > 40_000 {
		t.Errorf("%d bytes, %v", len(svg), err)
	}
}
