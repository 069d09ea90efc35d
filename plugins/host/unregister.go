package host

import "context"

// Unregister forgets the plugin of that hash and frees its code; one that is not
// there is no error. Its streams must have been closed, and the caller makes sure
// that nobody opens another one meanwhile.
func (h *Host) Unregister(ctx context.Context, sha string) error {
	h.mu.Lock()
	var gone *registered
	kept := make([]*registered, 0, len(h.list))
	for _, r := range h.list {
		if r.info.SHA256 == sha {
			gone = r
			continue
		}
		kept = append(kept, r)
	}
	h.list = kept
	h.mu.Unlock()
	if gone == nil {
		return nil
	}
	gone.samples.close()
	gone.pool.close()
	return gone.release(ctx)
}

// Has reports whether the plugin of that hash is registered.
func (h *Host) Has(sha string) bool {
	return h.find(func(r *registered) bool { return r.info.SHA256 == sha }) != nil
}
