package wiring

import (
	"context"
	"time"

	storagepostgres "github.com/loadstone-db/loadstone/storage/postgres"
)

// announceKeys has the other servers and `loadstone keys` know which keys this process has, and reads the key file when
// it has changed, until Close.
func (s *Services) announceKeys(ctx context.Context) error {
	if err := s.Store.AnnounceKeys(ctx, s.owner); err != nil {
		return err
	}
	going, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		failing := false
		for {
			select {
			case <-going.Done():
				return
			case <-time.After(storagepostgres.KeyAnnounceInterval):
			}
			err := s.Store.AnnounceKeys(going, s.owner)
			if err != nil && !failing && going.Err() == nil {
				s.Log.Warn().Err(err).Msg("the keys of this server cannot be read or announced")
			}
			failing = err != nil
		}
	}()
	s.onClose(func(ctx context.Context) error {
		stop()
		<-done
		if err := s.Store.WithdrawKeys(ctx, s.owner); err != nil {
			s.Log.Debug().Err(err).Msg("the keys of this server are not withdrawn") // they expire
		}
		return nil
	})
	return nil
}
