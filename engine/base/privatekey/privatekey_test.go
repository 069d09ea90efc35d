package privatekey

import (
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/youmark/pkcs8"
)

// TestKeysAreDecryptedOneByOne: many requests with costly keys do not take all processors, nor as much memory as they
// are.
func TestKeysAreDecryptedOneByOne(t *testing.T) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := pkcs8.MarshalPrivateKey(key, []byte("open"), nil)
	if err != nil {
		t.Fatal(err)
	}
	one.Lock()
	done := make(chan error)
	go func() {
		_, err := Decrypt(der, "open")
		done <- err
	}()
	select {
	case <-done:
		t.Error("two keys are decrypted at once")
	case <-time.After(200 * time.Millisecond):
		one.Unlock()
		err := <-done
		if err != nil {
			t.Error(err)
		}
		if _, err := Decrypt(der, "shut"); err == nil {
			t.Error("another passphrase opens it")
		}
	}
}
