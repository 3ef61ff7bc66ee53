//go:build !unix

package bench

import "errors"

func openBoard(string) (*board, func(), error) {
	return nil, nil, errors.New("bench: needs memory that processes share, as Unix systems have it")
}
