package pki

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"strings"
)

// TokenPrefix begins each token by which nodes join.
const TokenPrefix = "lsn_"

const (
	tokenVersion = 1
	idSize       = 8
	secretSize   = 32
	tokenSize    = 1 + idSize + sha256.Size + secretSize + crc32.Size
)

// ErrToken says that a text is no token.
var ErrToken = errors.New("it is no token of loadstone node token, or a part of one")

// Token lets a node join the servers of one authority.
type Token struct {
	// ID names it where it is not to be known.
	ID string
	// Authority is the fingerprint of whose servers may be believed.
	Authority [sha256.Size]byte
	secret    [secretSize]byte
}

// NewToken makes a token of the authority.
func NewToken(a *Authority) Token {
	t := Token{Authority: a.Fingerprint()}
	id := make([]byte, idSize)
	_, _ = rand.Read(id) // it never fails
	_, _ = rand.Read(t.secret[:])
	t.ID = hex.EncodeToString(id)
	return t
}

// Secret is the token as a user copies it.
func (t Token) Secret() string {
	id, _ := hex.DecodeString(t.ID)
	b := append([]byte{tokenVersion}, id...)
	b = append(append(b, t.Authority[:]...), t.secret[:]...)
	sum := crc32.ChecksumIEEE(b)
	b = append(b, byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
	return TokenPrefix + base64.RawURLEncoding.EncodeToString(b)
}

// String names the token without its secret, so that no log has it.
func (t Token) String() string { return "token " + t.ID }

// GoString is String.
func (t Token) GoString() string { return t.String() }

// Proof is what a node says of its token to a server of the authority.
func (t Token) Proof() []byte { return bytes.Clone(t.secret[:]) }

// ParseToken reads what Secret has written.
func ParseToken(text string) (Token, error) {
	encoded, ok := strings.CutPrefix(strings.TrimSpace(text), TokenPrefix)
	b, err := base64.RawURLEncoding.DecodeString(encoded)
	if !ok || err != nil || len(b) != tokenSize || b[0] != tokenVersion {
		return Token{}, ErrToken
	}
	body, sum := b[:tokenSize-crc32.Size], b[tokenSize-crc32.Size:]
	want := crc32.ChecksumIEEE(body)
	if !bytes.Equal(sum, []byte{byte(want >> 24), byte(want >> 16), byte(want >> 8), byte(want)}) {
		return Token{}, ErrToken
	}
	t := Token{ID: hex.EncodeToString(body[1 : 1+idSize])}
	copy(t.Authority[:], body[1+idSize:])
	copy(t.secret[:], body[1+idSize+sha256.Size:])
	return t, nil
}

// HashProof is what of a token's secret is kept.
func HashProof(proof []byte) [32]byte {
	return sha256.Sum256(append([]byte("loadstone join token "), proof...))
}
