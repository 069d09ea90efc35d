package host

import (
	"golang.org/x/sys/unix"
)

// mappingPiece is how much the kernel is given back at once: a call into it cannot be interrupted.
const mappingPiece = 1 << 20

// reserveAddresses maps addresses without access and without memory.
func reserveAddresses(size int) ([]byte, error) {
	all, err := unix.Mmap(-1, 0, size, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	// Zeroing a huge page is a step that nothing interrupts, and it would take 2 MB where a guest
	// uses a little. A kernel without huge pages refuses this, which does not matter.
	_ = unix.Madvise(all, unix.MADV_NOHUGEPAGE)
	return all, nil
}

// openPages gives access to what was without.
func openPages(part []byte) error { return unix.Mprotect(part, unix.PROT_READ|unix.PROT_WRITE) }

// shutPages gives the pages back to the kernel and takes away the access.
func shutPages(part []byte) error {
	for at := 0; at < len(part); at += mappingPiece {
		if err := unix.Madvise(part[at:min(at+mappingPiece, len(part))], unix.MADV_DONTNEED); err != nil {
			return err
		}
	}
	if len(part) == 0 {
		return nil
	}
	return unix.Mprotect(part, unix.PROT_NONE)
}

// unmapPages gives the addresses back. What cannot be unmapped is not used any more.
func unmapPages(all []byte) { _ = unix.Munmap(all) }
