package ledger

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"pgfsm/internal/canonical"
)

// ErrSealed means that the credentials of a connection cannot be opened: no configured key has sealed them, or
// their row was moved or changed.
var ErrSealed = errors.New("the credentials of the connection cannot be opened")

// SealKeyBytes is the length of a key that seals the credentials of connections.
const SealKeyBytes = 32

// sealFormat is the version of [sealPlace].
const sealFormat = 1

// SealKeys seal and open the credentials of connections. The first key seals, all open.
type SealKeys [][]byte

// keyID names a key in rows without revealing it.
func keyID(key []byte) (string, error) {
	id, err := hkdf.Key(sha256.New, key, nil, "pgfsm connection key id", 8)
	return hex.EncodeToString(id), err
}

// A sealPlace says which row the sealed credentials belong to. Each place has its own key, and is the associated
// data, so the credentials open nowhere else. Its members are in canonical order.
type sealPlace struct {
	Client     string `json:"client"`
	Format     int    `json:"format"`
	Generation int64  `json:"generation"`
	ID         string `json:"id"`
	Issuer     string `json:"issuer"`
	Key        string `json:"key"`
	Origin     string `json:"origin"` // the name of the ledger's log
	Person     string `json:"person"`
	Resource   string `json:"resource"`
	Server     string `json:"server"`
}

// sealer returns the AEAD of the row of a connection, and its associated data.
func (c *Connection) sealer(key []byte, r Reader) (cipher.AEAD, []byte, error) {
	origin, err := Origin(r)
	if err != nil {
		return nil, nil, err
	}
	place := canonical.MustSorted(sealPlace{
		Client:     c.Client,
		Format:     sealFormat,
		Generation: c.Generation,
		ID:         c.ID,
		Issuer:     c.Issuer,
		Key:        c.Key,
		Origin:     origin,
		Person:     c.Person,
		Resource:   c.Resource,
		Server:     c.Server,
	})
	derived, err := hkdf.Key(sha256.New, key, nil, string(place), SealKeyBytes)
	if err != nil {
		return nil, nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return aead, place, err
}

// seal seals the credentials of the row with the first key.
func (k SealKeys) seal(r Reader, c *Connection, credentials []byte) (err error) {
	if len(k) == 0 {
		return errors.New("there is no key to seal the credentials of connections")
	}
	if c.Key, err = keyID(k[0]); err != nil {
		return err
	}
	aead, place, err := c.sealer(k[0], r)
	if err != nil {
		return err
	}
	c.Sealed = aead.Seal(nil, nil, credentials, place)
	return nil
}

// open returns the credentials of a row. The error is [ErrSealed] if they do not open.
func (k SealKeys) open(r Reader, c *Connection) ([]byte, error) {
	for _, key := range k {
		id, err := keyID(key)
		if err != nil {
			return nil, err
		}
		if id != c.Key {
			continue
		}
		aead, place, err := c.sealer(key, r)
		if err != nil {
			return nil, err
		}
		credentials, err := aead.Open(nil, nil, c.Sealed, place)
		if err != nil {
			return nil, fmt.Errorf("%w: the row was moved or changed; have the person connect again", ErrSealed)
		}
		return credentials, nil
	}
	return nil, fmt.Errorf("%w: no key of connections.keys has the id %q; add the key that sealed them, or have the person connect again", ErrSealed, c.Key)
}

// Opens reports whether the credentials of a row can be opened.
func (k SealKeys) Opens(r Reader, c *Connection) bool {
	_, err := k.open(r, c)
	return err == nil
}
