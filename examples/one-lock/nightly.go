// nightly.go - the job of this folder in Go, over HTTP with the standard library: go run nightly.go ledger
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

type session struct {
	ID, Secret string
	TTL        int64 `json:"ttl_ms"`
	Valid      int64 `json:"valid_ms"`
}

type claim struct {
	State, Token string
	Valid        int64 `json:"valid_ms"`
}

func gate() string {
	if url := os.Getenv("CLAVE_GATE"); url != "" {
		return url
	}
	return "http://127.0.0.1:8080"
}

// call asks once, and decodes the answer into out.
func call(s *session, method, path string, body, out any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(method, gate()+"/v1"+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Prefer", "wait=30")
	if token := os.Getenv("CLAVE_GATE_TOKEN"); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if s.Secret != "" {
		request.Header.Set("Clave-Session", s.Secret)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, data)
	}
	if len(data) == 0 {
		return nil
	}
	return json.Unmarshal(data, out)
}

// renew keeps the session, and ends the context before another may own what it holds.
func renew(s *session, opened time.Time, lost context.CancelFunc) {
	ttl := time.Duration(s.TTL) * time.Millisecond
	end := time.AfterFunc(time.Until(opened.Add(ttl)), lost)
	for range time.Tick(ttl / 3) {
		var renewed session
		sent := time.Now() // valid_ms counts from before the request was sent
		if err := call(s, "POST", "/sessions/"+s.ID+"/renew", struct{}{}, &renewed); err == nil {
			end.Reset(time.Until(sent.Add(time.Duration(renewed.Valid) * time.Millisecond)))
		}
	}
}

func nightly(ctx context.Context, token string, ledger io.Writer) {
	fmt.Fprintf(ledger, "begin %s go\n", token)
	select {
	case <-time.After(100 * time.Millisecond):
		fmt.Fprintf(ledger, "end %s go\n", token)
	case <-ctx.Done(): // it may be another's by now
	}
}

func main() {
	name := "ledger"
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	ledger, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		log.Fatal(err)
	}
	var s session
	opened := time.Now()
	if err := call(&s, "POST", "/sessions", map[string]any{"ttl_ms": 10000}, &s); err != nil {
		log.Fatal(err)
	}
	ctx, lost := context.WithCancel(context.Background())
	go renew(&s, opened, lost)
	var c claim
	for c.State != "held" { // the same request again keeps the place in the queue
		err := call(&s, "POST", "/claims", map[string]any{"session": s.ID, "path": "/jobs/nightly", "kind": "lock"}, &c)
		if err != nil {
			log.Fatal(err)
		}
	}
	nightly(ctx, c.Token, ledger)
	if err := call(&s, "DELETE", "/sessions/"+s.ID, struct{}{}, nil); err != nil {
		log.Fatal(err)
	}
}
