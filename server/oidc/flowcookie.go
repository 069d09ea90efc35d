package oidc

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// sealer keeps a flow where its browser can neither read nor change it.
type sealer struct{ gcm cipher.AEAD }

func newSealer(key [32]byte) sealer {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic("oidc: a key of 32 bytes is none: " + err.Error())
	}
	gcm, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("oidc: AES has no GCM: " + err.Error())
	}
	return sealer{gcm}
}

func (s sealer) seal(f flow) (string, error) {
	text, err := json.Marshal(f)
	if err != nil {
		return "", fmt.Errorf("sealing a flow: %w", err)
	}
	//nolint:gosec // the nonce is random, and put before
	return base64.RawURLEncoding.EncodeToString(
		s.gcm.Seal(nil, nil, text, nil),
	), nil
}

func (s sealer) open(cookie string) (f flow, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(cookie)
	if err != nil || cookie == "" || len(raw) < s.gcm.Overhead() {
		return f, errors.New("is none of ours")
	}
	text, err := s.gcm.Open(nil, nil, raw, nil)
	if err != nil {
		return f, errors.New("is none of ours")
	}
	return f, json.Unmarshal(text, &f)
}

// limitedTransport keeps a provider from answering without end.
type limitedTransport struct{ http.RoundTripper }

const maxResponseBytes = 1 << 20

func (b limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxResponseBytes), res.Body}
	}
	return res, err
}
