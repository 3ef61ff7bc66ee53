//go:build unix

package bench

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openBoard maps the board in the file at path. close unmaps it.
func openBoard(path string) (b *board, closeBoard func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("bench: %w", err)
	}
	defer f.Close()
	mem, err := unix.Mmap(int(f.Fd()), 0, boardSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("bench: cannot share memory: %w", err)
	}
	return (*board)(unsafe.Pointer(&mem[0])), func() { _ = unix.Munmap(mem) }, nil
}
