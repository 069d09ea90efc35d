// This part keeps the second factor of users who sign in with a password: time-based one-time passwords (RFC 6238:
// SHA-1, six digits, 30 s, which every authenticator app knows), and recovery codes for when the app is lost.
//
// The secret of a user stands in the settings of the control store, sealed under the servers' key. Each code is good
// once: what was used last is saved with the version that was read, so that of two who send the same code at a time,
// to whatever server, one is let in.

package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/boombuler/barcode/qr"
	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

const (
	period = 30 * time.Second
	digits = otp.DigitsSix
	// skew is how many periods a clock may be wrong by, either way.
	skew = 1
	// totpSecretBytes is the length that RFC 4226 recommends.
	totpSecretBytes = 20
	recoveryCodes   = 10
	recoveryBytes   = 7 // 56 bits, 12 characters
)

// ErrCodeRequired is what signing in without a code gives where one is needed; it is said to who has typed the right
// password alone.
var ErrCodeRequired = &engine.Error{Code: engine.CodeUnauthorized,
	Message: "The password is right. A code is needed, too.",
	Hint:    "Type the six digits that your authenticator app shows, or a recovery code.",
	Fields:  []engine.FieldError{{Field: "code", Message: "is needed"}}}

// ErrWrongCode is what a wrong or used code gives.
var ErrWrongCode = &engine.Error{Code: engine.CodeUnauthorized, Message: "The code is wrong, or it was used already.",
	Hint:   "Wait for the next one in your app, and check that its clock is right. Each recovery code works once.",
	Fields: []engine.FieldError{{Field: "code", Message: "is wrong, or was used already"}}}

// factor is what is kept of a user.
type factor struct {
	Secret string `json:"secret"` // base32, as apps take it
	// ConfirmedAt is zero until the user has shown a code: nobody is asked for what was never seen to work.
	ConfirmedAt time.Time `json:"confirmed_at"`
	// LastStep is the period of the last code that was used.
	LastStep uint64 `json:"last_step"`
	// Recovery are the SHA-256 of the recovery codes that were not used.
	Recovery []string `json:"recovery"`
}

// SecondFactors keeps the second factors of users. It is safe for concurrent use.
type SecondFactors struct {
	Settings store.Settings
	// Now is the time; nil means time.Now.
	Now func() time.Time
}

func (k *SecondFactors) now() time.Time {
	if k.Now != nil {
		return k.Now()
	}
	return time.Now()
}

// State is what a user has.
type State struct {
	Enabled      bool        `json:"enabled"`
	EnabledAt    engine.Time `json:"enabled_at" doc:"Null where it is off."`
	RecoveryLeft int         `json:"recovery_left" doc:"How many recovery codes were not used."`
}

// Begun is a new second factor, which counts once a code of it was shown.
type Begun struct {
	Secret string `json:"secret" doc:"In base32, for apps that cannot read the picture."`
	URL    string `json:"url" doc:"otpauth://totp/…, what the picture says."`
	QR     string `json:"qr_svg" doc:"The picture of the URL, as SVG."`
}

func (k *SecondFactors) read(ctx context.Context, userID string) (f factor, kept store.Setting, err error) {
	kept, err = k.Settings.Setting(ctx, "totp:"+userID)
	if err != nil || len(kept.Secret) == 0 {
		return factor{}, kept, err
	}
	if err := json.Unmarshal(kept.Secret, &f); err != nil {
		return f, kept, fmt.Errorf("reading a second factor: %w", err)
	}
	return f, kept, nil
}

// write replaces what was read; nil leaves nothing of it.
func (k *SecondFactors) write(ctx context.Context, kept store.Setting, f *factor, by string) error {
	kept.Value, kept.UpdatedBy, kept.Secret = json.RawMessage("{}"), by, nil
	if f != nil {
		text, err := json.Marshal(f) //nolint:gosec // the field is what the user sends or is shown once
		if err != nil {
			return fmt.Errorf("saving a second factor: %w", err)
		}
		kept.Secret = text
	}
	_, err := k.Settings.SaveSetting(ctx, kept)
	return err
}

// Status says what a user has.
func (k *SecondFactors) Status(ctx context.Context, userID string) (State, error) {
	f, _, err := k.read(ctx, userID)
	if err != nil || f.ConfirmedAt.IsZero() {
		return State{}, err
	}
	return State{Enabled: true, EnabledAt: engine.At(f.ConfirmedAt), RecoveryLeft: len(f.Recovery)}, nil
}

// Enroll makes a new secret. One that was confirmed is not replaced.
func (k *SecondFactors) Enroll(ctx context.Context, u store.User, issuer string) (Begun, error) {
	f, kept, err := k.read(ctx, u.UserID)
	if err != nil {
		return Begun{}, err
	}
	if !f.ConfirmedAt.IsZero() {
		return Begun{}, &engine.Error{Code: engine.CodeConflict, Message: "You have a second factor.",
			Hint: "Turn it off first; that asks for your password and a code."}
	}
	f = factor{Secret: randomText(totpSecretBytes)}
	b := Begun{Secret: f.Secret, URL: otpURL(issuer, u.Name, f.Secret)}
	if b.QR, err = qrCode(b.URL); err != nil {
		return Begun{}, err
	}
	return b, k.write(ctx, kept, &f, u.Name)
}

// Confirm has the second factor count from now on, once a code of it is right. It returns the recovery codes, which
// nobody can read again.
func (k *SecondFactors) Confirm(ctx context.Context, u store.User, code string) ([]string, error) {
	f, kept, err := k.read(ctx, u.UserID)
	switch {
	case err != nil:
		return nil, err
	case f.Secret == "" || !f.ConfirmedAt.IsZero():
		return nil, &engine.Error{Code: engine.CodeConflict, Message: "There is nothing to confirm.",
			Hint: "Begin anew: POST /api/auth/totp."}
	}
	step, ok := f.match(code, k.now())
	if !ok {
		return nil, engine.InvalidField("code", "is wrong", "type the six digits that the app shows now; is its clock right?")
	}
	f.ConfirmedAt, f.LastStep = k.now().UTC(), step
	codes := make([]string, recoveryCodes)
	for i := range codes {
		c := strings.ToLower(randomText(recoveryBytes))
		codes[i] = c[:6] + "-" + c[6:]
		f.Recovery = append(f.Recovery, hashRecoveryCode(codes[i]))
	}
	return codes, k.write(ctx, kept, &f, u.Name)
}

// Check is nil for a right code, and for who has no second factor. A code that was used is wrong.
func (k *SecondFactors) Check(ctx context.Context, u store.User, code string) error {
	f, kept, err := k.read(ctx, u.UserID)
	switch {
	case err != nil:
		return fmt.Errorf("asking for a second factor: %w", err)
	case f.ConfirmedAt.IsZero():
		return nil
	case strings.TrimSpace(code) == "":
		return ErrCodeRequired
	case !f.use(code, k.now()):
		return ErrWrongCode
	}
	err = k.write(ctx, kept, &f, u.Name)
	if errors.Is(err, store.ErrConflict) {
		return ErrWrongCode // somebody was faster, with this code or another
	}
	return err
}

// Remove turns a second factor off; by says who did. Harmless where there is none.
func (k *SecondFactors) Remove(ctx context.Context, userID, by string) error {
	f, kept, err := k.read(ctx, userID)
	if err != nil || f.Secret == "" {
		return err
	}
	return k.write(ctx, kept, nil, by)
}

// use takes a code, which is not good again.
func (f *factor) use(code string, now time.Time) bool {
	if step, ok := f.match(code, now); ok {
		if step <= f.LastStep {
			return false
		}
		f.LastStep = step
		return true
	}
	hash, found := hashRecoveryCode(code), -1
	for i, h := range f.Recovery {
		if subtle.ConstantTimeCompare([]byte(h), []byte(hash)) == 1 {
			found = i
		}
	}
	if found < 0 {
		return false
	}
	f.Recovery = slices.Delete(f.Recovery, found, found+1)
	return true
}

// match finds the period that a code is of.
func (f *factor) match(code string, now time.Time) (step uint64, ok bool) {
	code = strings.ReplaceAll(strings.TrimSpace(code), " ", "")
	middle := now.Unix() / int64(period/time.Second)
	for i := middle - skew; i <= middle+skew; i++ {
		if i < 0 {
			continue
		}
		right, err := hotp.ValidateCustom(code, uint64(i), f.Secret,
			hotp.ValidateOpts{Digits: digits, Algorithm: otp.AlgorithmSHA1})
		if err == nil && right {
			step, ok = uint64(i), true
		}
	}
	return step, ok
}

// hashRecoveryCode is how a recovery code is kept: 56 random bits need no slow hash. Case, spaces and dashes do not
// count.
func hashRecoveryCode(code string) string {
	code = strings.NewReplacer("-", "", " ", "").Replace(strings.ToLower(strings.TrimSpace(code)))
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}

// randomText is so many random bytes, in base32.
func randomText(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: the runtime ends the process instead
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b)
}

// otpURL is what apps read: https://github.com/google/google-authenticator/wiki/Key-Uri-Format.
func otpURL(issuer, name, secret string) string {
	label := url.PathEscape(issuer + ":" + name)
	q := url.Values{"secret": {secret}, "issuer": {issuer}}
	return "otpauth://totp/" + label + "?" + strings.ReplaceAll(q.Encode(), "+", "%20")
}

func isBlack(i image.Image, x, y int) bool {
	r, _, _, _ := i.At(x, y).RGBA()
	return r == 0
}

// qrCode is a text as a QR code, in SVG: black on white in either theme, with the quiet zone that cameras want.
func qrCode(of string) (string, error) {
	code, err := qr.Encode(of, qr.M, qr.Auto)
	if err != nil {
		return "", fmt.Errorf("drawing a QR code: %w", err)
	}
	const quiet = 4
	n := code.Bounds().Dx()
	var path strings.Builder
	for y := range n {
		for x := 0; x < n; x++ {
			from := x
			for x < n && isBlack(code, x, y) {
				x++
			}
			if x > from {
				fmt.Fprintf(&path, "M%d %dh%dv1h-%[3]dz", from+quiet, y+quiet, x-from)
			}
		}
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[1]d" shape-rendering="crispEdges">`+
		`<path fill="#fff" d="M0 0h%[1]dv%[1]dH0z"/><path fill="#000" d="%s"/></svg>`, n+2*quiet, path.String()), nil
}
