import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;

/** Sends texts with the JDK's client as it is: it offers to upgrade to HTTP/2 with every first request. */
class Translate {
    public static void main(String[] arguments) throws Exception {
        HttpClient client = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(60)).build();
        for (int number = 0; number < 20; number++) {
            String text = "{\"text\": \"station " + number + "\", \"source_language_code\": \"en\", \"target_language_code\": \"de\"}";
            HttpRequest.BodyPublisher body = HttpRequest.BodyPublishers.ofString(text);
            if (number % 2 == 1) {  // of unknown length: in chunks
                body = HttpRequest.BodyPublishers.fromPublisher(body);
            }
            HttpRequest request = HttpRequest.newBuilder(URI.create(arguments[0] + "/v1/translate"))
                .header("Content-Type", "application/json").timeout(Duration.ofSeconds(60)).POST(body).build();
            HttpResponse<String> response = client.send(request, HttpResponse.BodyHandlers.ofString());
            System.out.println(response.statusCode() + " " + response.version() + " " + response.body().length());
        }
    }
}
