# Accounts, keys, limits, vendors and the catalog of a running gateway, by `tollgate apply`. Only what Terraform itself has is used: no provider is downloaded.

terraform {
  required_version = ">= 1.4"
}

variable "url" {
  type        = string
  description = "The address of the gateway."
}

variable "configuration" {
  type        = any
  description = "What the file of `tollgate apply` says: accounts, limits, vendors, catalog. Secrets only as references such as env:NAME or vault:mount/path#field."
  validation {
    condition     = can(jsonencode(var.configuration.tollgate))
    error_message = "It must have the version of its format: tollgate = 1."
  }
}

variable "prune" {
  type        = bool
  default     = false
  description = "Removes what is there and not in the configuration."
}

variable "command" {
  type        = string
  default     = "npx tollgate"
  description = "How the command line is started on the machine that runs Terraform."
}

locals {
  file = jsonencode(var.configuration)
}

resource "terraform_data" "configuration" {
  triggers_replace = [sha256(local.file), var.url, var.prune]

  # The operator token is in the environment of whoever runs Terraform (TOLLGATE_OPERATOR_TOKEN), and never in the state.
  provisioner "local-exec" {
    interpreter = ["/bin/sh", "-euc"]
    command     = <<-SH
      folder=$(mktemp -d)
      trap 'rm -rf "$folder"' EXIT
      printf '%s' "$CONFIGURATION" > "$folder/tollgate.yaml"
      ${var.command} apply "$folder/tollgate.yaml" --yes ${var.prune ? "--prune" : ""}
    SH
    environment = {
      CONFIGURATION = local.file
      TOLLGATE_URL  = var.url
    }
  }
}

output "digest" {
  description = "Of the configuration that was applied last."
  value       = sha256(local.file)
  depends_on  = [terraform_data.configuration]
}
