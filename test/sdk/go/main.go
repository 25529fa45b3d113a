// Google's SDK for Go, with nothing but the address and a key. Says on a line each what went wrong; nothing: all went well.
package main

import (
	"context"
	"fmt"
	"os"

	"google.golang.org/genai"
)

func main() {
	ctx := context.Background()
	client, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey:      os.Getenv("GATEWAY_KEY"),
		Backend:     genai.BackendGeminiAPI,
		HTTPOptions: genai.HTTPOptions{BaseURL: os.Getenv("GATEWAY") + "/gemini"},
	})
	if err != nil {
		fmt.Println("client:", err)
		return
	}
	for _, model := range []string{"from-google", "beta-sonnet-4-6", "alpha-5.4"} {
		answer, err := client.Models.GenerateContent(ctx, model, genai.Text("Hello"), nil)
		if err != nil || answer.Text() == "" {
			fmt.Println(model, "whole:", err)
		}
		text, finish := "", genai.FinishReason("")
		for piece, err := range client.Models.GenerateContentStream(ctx, model, genai.Text("Hello [[chunks=20]]"), nil) {
			if err != nil {
				fmt.Println(model, "stream:", err)
				break
			}
			text += piece.Text()
			finish = piece.Candidates[0].FinishReason
		}
		if text == "" || finish != genai.FinishReasonStop {
			fmt.Println(model, "stream ended with", finish, "after", len(text), "bytes")
		}
	}
	fmt.Println("done")
}
