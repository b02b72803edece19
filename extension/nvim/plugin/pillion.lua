-- Defines :Pillion and the <Plug> mappings. Nothing else is loaded before one of them is used.
if vim.g.loaded_pillion == 1 then
  return
end
vim.g.loaded_pillion = 1

vim.api.nvim_create_user_command("Pillion", function(args)
  require("pillion.commands").run(args)
end, {
  nargs = "*",
  range = true,
  bang = true,
  desc = "Ask Pillion, or one of its subcommands",
  complete = function(lead, line, pos)
    return require("pillion.commands").complete(lead, line, pos)
  end,
})

local function plug(name, command, mode)
  vim.keymap.set(mode or "n", "<Plug>(pillion-" .. name .. ")", command, { silent = true, desc = "Pillion: " .. name })
end
plug("toggle", "<Cmd>Pillion chat toggle<CR>")
plug("prompt", ":Pillion ")
plug("prompt", ":Pillion ", "x")
plug("add", "<Cmd>Pillion add<CR>")
plug("add", ":Pillion add<CR>", "x")
for _, name in ipairs({ "stop", "review", "accept", "reject", "edit", "comment", "sessions", "resume", "checkpoint", "model", "mode", "log", "undo", "redo", "answer" }) do
  plug(name, "<Cmd>Pillion " .. name .. "<CR>")
end
plug("accept-all", "<Cmd>Pillion accept all<CR>")
plug("reject-all", "<Cmd>Pillion reject all<CR>")
plug("next", "<Cmd>Pillion review next<CR>")
plug("prev", "<Cmd>Pillion review prev<CR>")
plug("split", "<Cmd>Pillion review split<CR>")
plug("reset", "<Cmd>Pillion review reset<CR>")
