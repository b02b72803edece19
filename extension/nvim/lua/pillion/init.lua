-- Pillion in Neovim. Loading this module does nothing; each part is loaded when it is first used.
--
--   require("pillion").setup({ keymaps = { accept = "<leader>a" } })   -- optional
--   :Pillion fix the failing test
local M = {}

-- Merges options over the defaults and checks them. Calling it is optional.
---@param options? pillion.Options|table
function M.setup(options)
  local config = require("pillion.config")
  local problems = config.set(options)
  if #problems > 0 then
    vim.notify("Pillion: " .. table.concat(problems, "\nPillion: "), vim.log.levels.WARN, { title = "Pillion" })
  end
  local keys = config.options.global_keymaps
  if keys then
    keys = keys == true and config.global_defaults or keys --[[@as table]]
    for name, lhs in pairs(keys) do
      if lhs then
        local plug = "<Plug>(pillion-" .. name .. ")"
        vim.keymap.set(name == "prompt" and { "n", "x" } or (name == "add" and { "n", "x" } or "n"), lhs, plug, { desc = "Pillion: " .. name })
      end
    end
  end
end

-- A short text for a statusline: empty while Pillion is not running.
---@return string
function M.statusline()
  local status = package.loaded["pillion.status"]
  return status and status.text() or ""
end

-- Sends a prompt to the current session; starts a session if there is none.
---@param text string
---@param context? pillion.Context[]
function M.prompt(text, context)
  require("pillion.chat").prompt(text, context)
end

-- Runs a subcommand as `:Pillion` would, for mappings: command("accept"), command("chat", "toggle").
---@param name string
---@vararg string
function M.command(name, ...)
  require("pillion.commands").run({ fargs = { name, ... }, args = table.concat({ name, ... }, " "), range = 0, line1 = 0, line2 = 0 })
end

return M
